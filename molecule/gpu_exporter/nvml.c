/* Stands in for the driver's library: two GPUs with made-up numbers, behind a device file that has to be open to who
   asks. What is not here is not supported. A number in /run/gpu_process is the process that uses them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { OK = 0, INVALID = 2, NO_PERMISSION = 4, TOO_SMALL = 7 };
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int gpu, memory; } Utilization;
typedef struct { unsigned int pid; unsigned long long used; unsigned int instance, compute; } Process;
static int devices[] = {0, 1};

static int answer(char *buffer, unsigned int length, const char *text) {
    if (strlen(text) >= length) return TOO_SMALL;
    strcpy(buffer, text);
    return OK;
}

/* Nothing answers behind the file of a GPU that is not there, but it can be opened or not. */
int nvmlInitWithFlags(unsigned int flags) {
    int file = open("/dev/nvidia0", O_RDWR);
    return file < 0 && errno != ENXIO ? NO_PERMISSION : OK;
}
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == NO_PERMISSION ? "Insufficient Permissions" : "an error"; }
int nvmlSystemGetDriverVersion(char *buffer, unsigned int length) { return answer(buffer, length, "580.95.05"); }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 13000; return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, int **device) {
    if (index > 1) return INVALID;
    *device = &devices[index];
    return OK;
}
int nvmlDeviceGetIndex(int *device, unsigned int *index) { *index = *device; return OK; }
int nvmlDeviceGetName(int *device, char *buffer, unsigned int length) { return answer(buffer, length, "Stand-in"); }
int nvmlDeviceGetUUID(int *device, char *buffer, unsigned int length) {
    return answer(buffer, length, *device ? "GPU-00000000-0000-0000-0000-000000000001"
                                          : "GPU-00000000-0000-0000-0000-000000000000");
}
int nvmlDeviceGetMemoryInfo(int *device, Memory *memory) {
    *memory = (Memory){80ULL << 30, 60ULL << 30, 20ULL << 30};
    return OK;
}
int nvmlDeviceGetUtilizationRates(int *device, Utilization *use) {
    *use = (Utilization){*device ? 0 : 87, 40};
    return OK;
}
int nvmlDeviceGetTemperature(int *device, int sensor, unsigned int *degrees) { *degrees = 61; return OK; }
int nvmlDeviceGetPowerUsage(int *device, unsigned int *milliwatts) { *milliwatts = 312000; return OK; }
int nvmlDeviceGetPowerManagementLimit(int *device, unsigned int *milliwatts) { *milliwatts = 400000; return OK; }
int nvmlDeviceGetClockInfo(int *device, int kind, unsigned int *megahertz) { *megahertz = 1410; return OK; }
int nvmlDeviceGetComputeRunningProcesses_v3(int *device, unsigned int *count, Process *processes) {
    unsigned int pid = 0, room = *count;
    FILE *file = fopen("/run/gpu_process", "r");
    if (file && fscanf(file, "%u", &pid) != 1) pid = 0;
    if (file) fclose(file);
    *count = pid ? 1 : 0;
    if (!pid) return OK;
    if (!processes || room < 1) return TOO_SMALL;
    processes[0] = (Process){pid, 20ULL << 30, -1, -1};
    return OK;
}

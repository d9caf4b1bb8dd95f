/* Stands in for the real plugin in tests: takes its options, heeds the first, says in the job where that arrived, and shows
 * the job the image's os-release where there is such an image; all else in the job is the host's. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>
#include <slurm/spank.h>

SPANK_PLUGIN(pyxis, 1)

const char built_by[] = "built by " BUILDER;

static char image[256] = "";

static int take_image(int value, const char *argument, int is_remote)
{
	snprintf(image, sizeof(image), "%s", argument);
	return 0;
}

static struct spank_option option = {"container-image", "IMAGE", "the image of the container", 1, 0, take_image};

static int take_any(int value, const char *argument, int is_remote)
{
	return 0;
}

static struct spank_option others[] = {
	{"container-mounts", "MOUNTS", "what the container sees", 1, 1, take_any},
	{"container-workdir", "DIRECTORY", "where it begins", 1, 2, take_any},
	{"container-mount-home", NULL, "it sees the home directory", 0, 3, take_any},
	{"no-container-remap-root", NULL, "its user stays who he is", 0, 4, take_any},
	{"no-container-entrypoint", NULL, "nothing else is run", 0, 5, take_any},
};

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
	for (size_t number = 0; number < sizeof(others) / sizeof(others[0]); number++)
		if (spank_option_register(spank, &others[number]) != ESPANK_SUCCESS)
			return -1;
	return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/* Runs in the job, on the node, as root; nobody else sees the mounts. */
int slurm_spank_task_init_privileged(spank_t spank, int count, char **arguments)
{
	char command[512];

	if (!image[0] || access(image, R_OK) != 0)
		return 0;
	snprintf(command, sizeof(command), "unsquashfs -quiet -no-progress -dest /mnt/image %s etc/os-release >&2", image);
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/mnt", "tmpfs", 0, "size=1m,mode=755") != 0 || system(command) != 0 ||
	    mount("/mnt/image/etc/os-release", "/etc/os-release", NULL, MS_BIND, NULL) != 0)
		return -1;
	return 0;
}

/* Runs in the job, on the node, as the user. */
int slurm_spank_task_init(spank_t spank, int count, char **arguments)
{
	char host[256];

	if (image[0] && gethostname(host, sizeof(host)) == 0) {
		for (int number = 0; number < count; number++)
			printf("%s ", arguments[number]);
		printf("image %s on %s\n", image, host);
		fflush(stdout);
	}
	return 0;
}

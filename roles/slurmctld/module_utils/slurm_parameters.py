"""What a change of each parameter does to jobs and needs of the daemons, as data.

The manuals are slurm.conf(5), cgroup.conf(5) and job_container.conf(5) of Slurm 22.05, 23.11, 24.11 and
26.05; where they differ, the strictest counts. Jobs are aborted by slurmctld itself for the same reasons in
all four (_sync_jobs_to_conf() in src/slurmctld/read_config.c). 24.11 was tried, too: with a batch job and an
interactive one on GPUs, one that waits, and a step that starts after the change. What no table has, as a
parameter of a later release or a plugin that nobody tried, counts as losing all jobs.
"""

from __future__ import annotations

from collections.abc import Mapping

LOSES: Mapping[str, str] = {
    "StateSaveLocation": "the queue stays behind in the old directory: all jobs, pending ones too, are lost",
    "SlurmdSpoolDir": "slurmd looks for its running jobs in this directory, and loses those in the old one",
    "AuthType": "steps that run are interrupted and cannot complete",
    "CredType": "running jobs hold credentials of the old kind",
    "CryptoType": "running jobs hold credentials of the old kind",
    "SlurmctldPort": "running jobs report to the old port",
    "SlurmdPort": "running jobs are known at the old port",
    "SlurmUser": "the queue belongs to the old user",
    "ClusterName": "slurmctld refuses the queue of a cluster with another name",
    "JobContainerType": "running jobs cannot start further steps outside of the namespace that they began in",
    "SelectType": "each plugin keeps jobs in a form of its own: running and waiting ones fail",
    "SwitchType": "the records of all jobs, in any state, may be lost",
    "PreemptMode": "jobs that began under another mode may be ended for others",
}
"""Parameters of slurm.conf whose change loses jobs that run, and why."""

PREEMPTS_UNHARMED = frozenset({"", "off", "gang", "suspend", "within"})
"""Words of PreemptMode by which no job that runs is ended."""

CONTROLLER_AT_ANOTHER_ADDRESS = "srun and salloc report to the old address, so that their jobs never end"
"""Seen on 24.11, where a batch job ended as it should: of its end tells slurmd, which reads the new file."""

LOSES_PENDING = frozenset({"StateSaveLocation", "ClusterName", "SlurmUser", "SelectType", "SwitchType"})
"""Those of them that lose jobs which wait as well."""

DEFAULTS: Mapping[str, str] = {
    "SlurmdSpoolDir": "/var/spool/slurmd",
    "SlurmctldPort": "6817",
    "SlurmdPort": "6818",
    "AuthType": "auth/munge",
    "CredType": "auth/munge",
    "CryptoType": "crypto/munge",
    "JobContainerType": "job_container/none",
}
"""What slurmd takes when the parameter is not written: writing it out is no change."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.lower().split())


# Limits, times, programs, logs and weights. The manual has no word of jobs for them; they are asked for when
# something starts or ends. Not here, on purpose: what ends jobs by itself once it is set (InactiveLimit,
# OverTimeLimit, JobAcctGatherParams=OverMemoryKill).
_SETTINGS = _names("""
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost
    AccountingStorageHost AccountingStorageParameters AccountingStoragePass AccountingStoragePort
    AccountingStorageTRES AccountingStorageUser AccountingStoreFlags AcctGatherNodeFreq BatchStartTimeout
    BcastExclude BcastParameters CliFilterPlugins CompleteWait CpuFreqDef CpuFreqGovernors DebugFlags
    DefCpuPerGPU GpuFreqDef
    DefMemPerCPU DefMemPerGPU DefMemPerNode DependencyParameters DisableRootJobs EioTimeout
    EnforcePartLimits Epilog EpilogMsgTime EpilogSlurmctld FairShareDampeningFactor GetEnvTimeout
    GroupUpdateForce GroupUpdateTime HealthCheckInterval HealthCheckNodeState HealthCheckProgram
    InteractiveStepOptions JobAcctGatherFrequency JobCompHost JobCompLoc JobCompParams JobCompPass
    JobCompPort JobCompUser JobFileAppend JobRequeue JobSubmitPlugins KillOnBadExit KillWait LaunchParameters
    LogTimeFormat MailDomain MailProg MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxMemPerCPU MaxMemPerNode
    MaxStepCount MaxTasksPerNode MessageTimeout MinJobAge MpiDefault MpiParams PreemptExemptTime
    PreemptParameters PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall
    PriorityFlags PriorityMaxAge PriorityParameters PrioritySiteFactorParameters PriorityUsageResetPeriod
    PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize
    PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData Prolog PrologEpilogTimeout
    PrologSlurmctld PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept
    RebootProgram ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate
    ResumeTimeout ResvEpilog ResvOverRun ResvProlog ReturnToService SchedulerParameters
    SchedulerTimeSlice ScronParameters SlurmSchedLogFile SlurmSchedLogLevel SlurmctldDebug
    SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg
    SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile
    SlurmdSyslogDebug SlurmdTimeout SrunEpilog SrunPortRange SrunProlog SuspendExcNodes SuspendExcParts
    SuspendExcStates SuspendProgram SuspendRate SuspendTime SuspendTimeout TCPTimeout TaskEpilog
    TaskProlog TmpFS TreeWidth UnkillableStepProgram UnkillableStepTimeout WaitTime X11Parameters
""")

# Plugins and the like of which 22.05's manual asks for a restart of slurmctld and no more, and that jobs went
# on under when they were changed on 24.11.
_TRIED = _names("""
    AcctGatherEnergyType AuthAltParameters AuthAltTypes Licenses PreemptType PriorityType SchedulerType
    SelectTypeParameters TopologyPlugin
""")

KEEPS = _SETTINGS | _TRIED
"""Parameters of slurm.conf whose change no job notices."""

NODE_LOSES: Mapping[str, str] = dict.fromkeys(
    ("CPUs", "Boards", "SocketsPerBoard", "Sockets", "CoresPerSocket", "ThreadsPerCore"),
    "a job is aborted when the sockets, cores or threads of a node that it has change",
) | {
    "Gres": "a job is aborted when the number or type of the GPUs of a node that it has changes",
    "NodeAddr": "the machine at the new address is asked for the jobs of the old one",
}
"""Parameters of a node whose change loses the jobs that run there, and why."""

NODE_KEEPS = _names("Feature Features RealMemory Reason State TmpDisk TRESWeights Weight")

PARTITION_KEEPS = _names("""
    AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default DefCpuPerGPU DefaultTime
    DefMemPerCPU DefMemPerGPU DefMemPerNode DenyAccounts DenyQos DisableRootJobs ExclusiveTopo
    ExclusiveUser GraceTime Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode
    MaxNodes MaxTime MinNodes Nodes OverSubscribe PowerDownOnIdle PriorityJobFactor
    PriorityTier QOS ReqResv ResumeTimeout RootOnly State SuspendTime SuspendTimeout TRESBillingWeights
""")
"""Parameters of a partition that no running job notices; a waiting one may have to wait on. They can be
changed under jobs by `scontrol update`, too (scontrol(1))."""

CGROUP_KEEPS = _names("""
    AllowedDevicesFile AllowedKmemSpace AllowedRAMSpace AllowedSwapSpace CgroupReleaseAgentDir
    ConstrainCores ConstrainDevices ConstrainKmemSpace ConstrainRAMSpace ConstrainSwapSpace
    MaxKmemPercent MaxRAMPercent MaxSwapPercent MemorySwappiness MinKmemSpace MinRAMSpace
""")
"""Parameters of cgroup.conf, which steps are given when they start."""

SCRATCH_KEEPS = _names("EntireStepInNS")
"""Parameters of job_container.conf that steps are given when they start: tried under running jobs."""

RECONFIGURES_BY_NEW_PROCESS = (23, 11)
"""From here on `scontrol reconfigure` starts new processes and so takes all but LISTENING_AND_AUTHENTICATION
(scontrol(1), reconfigure)."""

LISTENING_AND_AUTHENTICATION = _names(
    "AuthType AuthInfo CredType CryptoType SlurmctldPort SlurmdPort SlurmUser"
)

RECONFIGURABLE_BEFORE = (
    r"partitionname=.*|.*timeout|.*timelimit|.*debug|.*logfile|prioritymaxage|priorityweight.*|priorityfavorsmall|"
    r"returntoservice|def.*mem.*|max.*mem.*|schedulerparameters|prolog|epilog|healthcheck.*|killwait|mpidefault|"
    r"overtimelimit|enforcepartlimits"
)
"""Before 23.11: parameters that a reconfigure takes; others need a restart of slurmctld (slurm.conf(5)).

EnforcePartLimits: 22.05 and 23.02 read it anew (read_slurm_conf() in src/slurmctld/read_config.c), and go at
each submission by what they read (src/slurmctld/job_mgr.c).
"""

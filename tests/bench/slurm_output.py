"""What Slurm's commands would print on a cluster of any size, in the form of Slurm 24.11."""

from collections.abc import Mapping

_NODES_PER_RACK = 100
_JOBS_PER_USER = 40
_SUBMITTED = 1795300000


def outputs(nodes: int, jobs: int) -> Mapping[str, str]:
    """By the name of the exporter's command; two of five jobs run, one has ended, the others wait."""
    return {
        "controllers": "Slurmctld(primary) at ctl1 is UP\n",
        "nodes": "".join(_node(number) for number in range(1, nodes + 1)),
        "jobs": "".join(_job(number, nodes) for number in range(1, jobs + 1)),
        "scheduler": _scheduler(jobs),
        "partitions": "".join(
            f"PartitionName={name} State=UP TotalNodes={nodes}\n" for name in ("batch", "gpu")
        ),
        "configuration": "BOOT_TIME = 1795300000\nClusterName = large\nSLURM_VERSION = 24.11.5\n",
        "accounting": "large\n",
        "shares": "".join(
            f"  group{number % 20}|user{number}|1|0.005000|{number * 1000}|0.004000|0.50{number:04d}\n"
            for number in range(jobs // _JOBS_PER_USER)
        ),
    }


def _node(number: int) -> str:
    used = number % 9
    state = "IDLE" if used == 0 else "MIXED" if used < 8 else "ALLOCATED"
    drained = number % 97 == 0
    reason = f" Reason=node_health: GPU {used} is gone [root@{_SUBMITTED}]" if drained else ""
    rack = number // _NODES_PER_RACK
    return (
        f"NodeName=gpu{number:04d} Arch=x86_64 CoresPerSocket=48  CPUAlloc={used * 12} CPUEfctv=96 CPUTot=96 "
        f"CPULoad={used * 11.5:.2f} AvailableFeatures=h200,rack{rack} ActiveFeatures=h200,rack{rack} "
        f"Gres=gpu:h200:8(S:0-1) GresDrain=N/A GresUsed=gpu:h200:{used}(IDX:0-{used}) "
        f"NodeAddr=10.0.{rack}.{number % 100} "
        f"NodeHostName=gpu{number:04d} Version=24.11.5 OS=Linux 6.12.48+deb13-amd64 #1 SMP PREEMPT  "
        f"RealMemory=2063000 AllocMem={used * 250000} FreeMem=800000 Sockets=2 Boards=1 "
        f"State={state}{'+DRAIN' if drained else ''} ThreadsPerCore=1 TmpDisk=0 Weight=1 "
        "Owner=N/A MCS_label=N/A "
        f"Partitions=batch,gpu  BootTime={_SUBMITTED} SlurmdStartTime={_SUBMITTED} LastBusyTime={_SUBMITTED} "
        "ResumeAfterTime=None CfgTRES=cpu=96,mem=2063000M,billing=96,gres/gpu=8,gres/gpu:h200=8 "
        f"AllocTRES=cpu={used * 12},mem={used * 250000}M,gres/gpu={used},gres/gpu:h200={used} "
        f"CurrentWatts=0 AveWatts=0 {reason}\n"
    )


def _job(number: int, nodes: int) -> str:
    user = number // _JOBS_PER_USER
    partition = "gpu" if number % 3 else "batch"
    gpus = 1 << number % 4
    tres = (
        f"cpu={gpus * 12},mem={gpus * 250}G,node=1,billing={gpus * 12},gres/gpu={gpus},gres/gpu:h200={gpus}"
    )
    submitted = _SUBMITTED + number
    head = f"{partition}|user{user}|group{user % 20}|normal|{submitted}|{submitted}"
    node = f"gpu{number % nodes + 1:04d}"
    kind = number % 5
    if kind < 2:
        return f"{number}|RUNNING|{head}|{submitted + 60}|NONE|1-00:00:00|{tres}|{node}|None\n"
    if kind == 2:
        return f"{number}|COMPLETED|{head}|{submitted + 60}|{submitted + 900}|1-00:00:00|{tres}|{node}|None\n"
    array = f"{number}_[1-{number % 50 + 1}%4]" if kind == 4 else str(number)
    reason = "Resources" if number % 10 == 3 else "Priority"
    return f"{array}|PENDING|{head}|N/A|N/A|1-00:00:00|{tres}||{reason}\n"


def _scheduler(jobs: int) -> str:
    calls = "".join(
        f"\tREQUEST_NUMBER_{number}                  ( 20{number:02d}) count:{number}      "
        f"ave_time:128    total_time:{number * 128}\n"
        for number in range(60)
    )
    users = "".join(
        f"\tuser{number}            (    {10000 + number}) count:5     ave_time:1933   total_time:9667\n"
        for number in range(jobs // _JOBS_PER_USER)
    )
    return (
        "Data since      Sat Nov 21 23:53:54 2026 (1795305234)\n"
        "Server thread count:  4\nDBD Agent queue size: 0\n\n"
        "Main schedule statistics (microseconds):\n\tLast cycle:   454\n\n"
        f"Remote Procedure Call statistics by message type\n{calls}\n"
        f"Remote Procedure Call statistics by user\n{users}\nPending RPC statistics\n\tNo pending RPCs\n"
    )

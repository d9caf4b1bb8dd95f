"""Submitting a job's script again: its options, as Slurm says them, and whether its user has these still."""

from __future__ import annotations

import re
from collections.abc import Iterator

from portal_choices import NotAllowedError, Offers, accounts_of, qos_of

_WORD = re.compile(r"(\S+?)=(\S*)")
_REST_OF_LINE = ("JobName", "WorkDir")
_NOTHING = frozenset({"", "(null)", "N/A", "None", "0", "UNLIMITED", "Partition_Limit"})
_OPTIONS = {
    "TimeLimit": "--time",
    "NumNodes": "--nodes",
    "NumTasks": "--ntasks",
    "CPUs/Task": "--cpus-per-task",
    "MinMemoryNode": "--mem",
    "MinMemoryCPU": "--mem-per-cpu",
    "Features": "--constraint",
    "Reservation": "--reservation",
    "Licenses": "--licenses",
    "ArrayTaskId": "--array",
}
_GPUS = {"TresPerJob": "--gpus", "TresPerNode": "--gpus-per-node", "TresPerTask": "--gpus-per-task"}
_GPU = re.compile(r"gres[:/]gpu((?::[A-Za-z0-9_.-]+)*)")


def fields(text: str) -> dict[str, str]:
    """What ``scontrol show job`` printed, by name; the first of several where a job is an array."""
    found: dict[str, str] = {}
    for line in text.split("\n\n", maxsplit=1)[0].splitlines():
        for name in _REST_OF_LINE:
            before, mark, value = line.partition(f"{name}=")
            if mark and (not before or before[-1] == " "):
                found.setdefault(name, value)
                line = before  # noqa: PLW2901 - what is left of it
        for name, value in _WORD.findall(line):
            found.setdefault(name, value)
    return found


def arguments(job: dict[str, str], may: Offers) -> list[str]:
    """The options of sbatch that a job had; raises NotAllowedError with a text for the user."""
    account, qos = job.get("Account", ""), job.get("QOS", "")
    for name in job.get("Partition", "").split(","):
        partition = may.partitions.get(name)
        if partition is None:
            raise NotAllowedError(f"You may not use the partition {name!r} any more.")
        if account not in accounts_of(partition, may.accounts):
            raise NotAllowedError(f"You may not charge {account!r} in partition {name} any more.")
        if qos not in _NOTHING and qos not in qos_of(partition, may.accounts[account]):
            raise NotAllowedError(f"You may not use the QOS {qos!r} with account {account} any more.")
    return [
        f"--partition={job['Partition']}",
        f"--account={account}",
        *([f"--qos={qos}"] if qos not in _NOTHING else []),
        *_sizes(job),
        *(f"{option}={job[name]}" for name, option in _texts(job)),
    ]


def _sizes(job: dict[str, str]) -> Iterator[str]:
    for name, option in _OPTIONS.items():
        value = job.get(name, "")
        if value not in _NOTHING or (name == "ArrayTaskId" and value == "0"):
            yield f"{option}={value}"
    for name, option in _GPUS.items():
        if found := _GPU.search(job.get(name, "")):
            yield f"{option}={found[1].removeprefix(':') or '1'}"
    # From Slurm 26.05 on, OverSubscribe is NO for every job of a partition that shares nothing.
    if job["Exclusive"] == "NODE" if "Exclusive" in job else job.get("OverSubscribe") == "NO":
        yield "--exclusive"


def _texts(job: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, option in (("JobName", "--job-name"), ("WorkDir", "--chdir")):
        if job.get(name, "") not in _NOTHING:
            yield name, option

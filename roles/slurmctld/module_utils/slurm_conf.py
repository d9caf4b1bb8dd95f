"""slurm.conf as data: its parameters, what differs between two of them, and what of that loses jobs."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

Conf = dict[str, str]

_LOSES_JOBS: Mapping[str, str] = {
    "StateSaveLocation": "the queue stays behind in the old directory: all jobs, pending ones too, are lost",
    "SlurmdSpoolDir": "slurmd looks for its running jobs in this directory, and loses those in the old one",
    "AuthType": "running jobs hold credentials of the old kind",
    "CredType": "running jobs hold credentials of the old kind",
    "CryptoType": "running jobs hold credentials of the old kind",
    "SlurmctldPort": "running jobs report to the old port",
    "SlurmdPort": "running jobs are known at the old port",
    "SlurmUser": "the queue belongs to the old user",
    "ClusterName": "slurmctld refuses the queue of a cluster with another name",
    "JobContainerType": "running jobs cannot start further steps outside of the namespace that they began in",
}
"""Parameters that must not change under jobs, and why (slurm.conf(5))."""
_LOSES_PENDING_JOBS = frozenset({"StateSaveLocation", "ClusterName", "SlurmUser"})
ASK_FOR_JOBS = ("timeout", "15", "squeue", "--noheader", "--all", "--format", "%i")
"""Without its controller squeue would try for minutes."""
_STARTED = "CONFIGURING,RUNNING,SUSPENDED,COMPLETING"
_NODE = "nodename="
_DEFAULTS: Mapping[str, str] = {
    "SlurmdSpoolDir": "/var/spool/slurmd",
    "SlurmctldPort": "6817",
    "SlurmdPort": "6818",
    "AuthType": "auth/munge",
    "CredType": "auth/munge",
    "CryptoType": "crypto/munge",
    "JobContainerType": "job_container/none",
}
"""What slurmd takes when the parameter is not written: writing it out is no change."""


_BETWEEN_HOSTS = re.compile(r",(?![^\[]*\])")
_RANGE = re.compile(r"([^\[]*)\[([^\]]*)\](.*)")
_ADDRESS = re.compile(r"\bNodeAddr=(\S+)", re.IGNORECASE)


def hosts_of(hostlist: str) -> Iterator[str]:
    """The names or addresses of a hostlist, in its order: ``n[1-2],n07`` has n1, n2 and n07."""
    for part in _BETWEEN_HOSTS.split(hostlist):
        found = _RANGE.fullmatch(part)
        if not found:
            yield part
            continue
        for numbers in found[2].split(","):
            first, _, last = numbers.partition("-")
            for number in range(int(first), int(last or first) + 1):
                yield from hosts_of(f"{found[1]}{number:0{len(first)}d}{found[3]}")


def _nodes(hostlist: str, rest: str) -> Conf:
    """What one line says of each of its nodes."""
    names = [*hosts_of(hostlist)]
    found = _ADDRESS.search(rest)
    addresses = [*hosts_of(found[1])] if found else []
    if not found or len(addresses) != len(names):
        return {f"{_NODE}{name}": rest for name in names}
    before, after = rest[: found.start(1)], rest[found.end(1) :]
    return {f"{_NODE}{name}": f"{before}{address}{after}" for name, address in zip(names, addresses)}  # noqa: B905 - Python 3.9


def parse_conf(text: str) -> Conf:
    """The lines of a slurm.conf as lower-case key to value; nodes one by one, partitions by their name."""
    conf: Conf = {}
    for raw in text.splitlines():
        line = raw.split("#", 1)[0].strip()
        if "=" not in line:
            continue
        key, value = line.split("=", 1)
        if key.lower() in {"nodename", "partitionname", "nodeset", "slurmctldhost"}:
            first, _, rest = value.partition(" ")
            if key.lower() == "nodename":
                conf |= _nodes(first, rest.strip())
                continue
            conf[f"{key.lower()}={first}"] = rest.strip()
        else:
            conf[key.strip().lower()] = value.strip()
    return conf


def changed_parameters(before: str, after: str) -> list[str]:
    """Names of the parameters (or node and partition lines) that differ between two slurm.conf texts."""
    old, new = parse_conf(before), parse_conf(after)
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def guarded(before: str, after: str) -> list[dict[str, Any]]:
    """The changes that lose jobs, from one slurm.conf text to another.

    Each has ``parameter``, ``before``, ``after`` and ``why``; ``node`` when only jobs on that node are lost,
    and ``pending``, whether jobs that wait are lost as well.
    """
    if not before.strip():
        return []
    old, new = parse_conf(before), parse_conf(after)
    found: list[dict[str, Any]] = []
    for key, why in _LOSES_JOBS.items():
        values = [conf.get(key.lower(), _DEFAULTS.get(key, "")) for conf in (old, new)]
        if values[0] != values[1]:
            found.append(
                {"parameter": key, "before": values[0], "after": values[1], "why": why}
                | {"pending": key in _LOSES_PENDING_JOBS}
            )
    for key in sorted(old.keys() - new.keys()):
        if key.startswith(_NODE) and key != _NODE + "DEFAULT":
            name = key.removeprefix(_NODE)
            why = "a node that is removed takes its jobs along"
            found.append(
                {"parameter": "NodeName", "before": name, "after": "", "why": why}
                | {"node": name, "pending": False}
            )
    return found


def guarded_scratch(before: str, after: str) -> list[dict[str, Any]]:
    """The changes that take jobs their private directories, from one job_container.conf text to another."""
    old, new = parse_conf(before), parse_conf(after)
    why = "running jobs lose their private directories, and slurmd removes what it does not know"
    return [
        {"parameter": "BasePath", "before": old[key], "after": new[key], "why": why}
        | {"node": key.removeprefix(_NODE), "pending": False}
        for key in sorted(old.keys() & new.keys())
        if old[key] != new[key]
    ]


def squeue_arguments(change: Mapping[str, Any]) -> list[str]:
    """How squeue is asked for the jobs that a guarded change loses."""
    states = f"PENDING,{_STARTED}" if change["pending"] else _STARTED
    return ["--states", states, *(["--nodelist", change["node"]] if "node" in change else [])]

"""Slurm's files as data: their parameters, what differs between two of them, and what of that loses jobs."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ansible.module_utils.slurm_parameters import (
    CGROUP_KEEPS,
    DEFAULTS,
    KEEPS,
    LOSES,
    LOSES_PENDING,
    NODE_KEEPS,
    NODE_LOSES,
    PARTITION_KEEPS,
    PREEMPTS_UNHARMED,
    SCRATCH_KEEPS,
)

Conf = dict[str, str]

ASK_FOR_JOBS = ("timeout", "15", "squeue", "--noheader", "--all", "--format", "%i")
"""Without its controller squeue would try for minutes."""
ASK_WHAT_WAITS = (*ASK_FOR_JOBS[:-1], "%i|%n", "--states", "PENDING")
"""Its own choice of jobs by nodes, ``--nodelist``, goes by those where they run."""
_STARTED = "CONFIGURING,RUNNING,SUSPENDED,COMPLETING"
_NODE = "nodename="
_PARTITION = "partitionname="
_CONTROLLER = "slurmctldhost="
_UNKNOWN = "deploy does not know what a change of it does to jobs, so it counts as losing them"

_BETWEEN_HOSTS = re.compile(r",(?![^\[]*\])")
_RANGE = re.compile(r"([^\[]*)\[([^\]]*)\](.*)")
_NAME = re.compile(r"^\s*(\w+)\s*=", re.MULTILINE)
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


Change = dict[str, Any]


def guarded(before: Mapping[str, str], after: Mapping[str, str]) -> list[Change]:
    """The changes that lose jobs, from one set of Slurm's files, by their names, to another.

    Each has ``parameter``, ``before``, ``after`` and ``why``; ``nodes`` when only jobs on those are lost,
    ``partition`` when only its jobs are, and ``pending``, whether jobs that wait are lost as well;
    ``required``, whether those are that wait for one of the nodes by its name.
    """
    if not before.get("slurm.conf", "").strip():
        return []
    conf = [files.get("slurm.conf", "") for files in (before, after)]
    old, new = map(parse_conf, conf)
    spelling = {name.lower(): name for name in _NAME.findall("\n".join(conf))}
    found = [*_controllers(old, new), *_parameters(old, new, spelling)]
    found += [*_partitions(old, new), *_machines(old, new)]
    texts = [[files.get(name, "") for files in (before, after)] for name in _OTHER_FILES]
    for compare, (one, other) in zip((_cgroups, _devices), texts):  # noqa: B905 - Python 3.9
        found += compare(one, other)
    found += _scratch(*texts[2], {key[len(_NODE) :] for key in new if key.startswith(_NODE)})
    for name in sorted((before.keys() | after.keys()) - {"slurm.conf", *_OTHER_FILES, *_NO_JOB_NOTICES}):
        if before.get(name, "") != after.get(name, ""):
            found.append(_change(name, "", "", _UNKNOWN, pending=True))
    return found


_OTHER_FILES = ("cgroup.conf", "gres.conf", "job_container.conf")
_NO_JOB_NOTICES = frozenset(
    {"acct_gather.conf", "plugstack.conf", "topology.conf", "job_submit.lua", "cli_filter.lua"}
)
"""Files that are read when a step begins (what a node lacks of what they name is looked for elsewhere), when
nodes are chosen for a job, and when one is submitted, by slurmctld or by the user's command."""
_LOSES = {name.lower(): name for name in LOSES}
_NODE_LOSES = {name.lower(): why for name, why in NODE_LOSES.items()}


def _change(parameter: str, before: str, after: str, why: str, *, pending: bool = False) -> Change:
    return {"parameter": parameter, "before": before, "after": after, "why": why, "pending": pending}


def _controllers(old: Conf, new: Conf) -> Iterator[Change]:
    """Controllers with another address; whether another machine has the state is looked for elsewhere."""
    before, after = (_addresses(conf) for conf in (old, new))
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield _change(
                "SlurmctldHost", before[name], after[name], "running jobs report to the old address"
            )


def controllers_of(text: str) -> list[str]:
    """The names of the controllers that a slurm.conf says, the first of them first."""
    return [*_addresses(parse_conf(text))]


def _addresses(conf: Conf) -> Conf:
    hosts = (
        key[len(_CONTROLLER) :].rstrip(")").partition("(") for key in conf if key.startswith(_CONTROLLER)
    )
    return {name: address or name for name, _, address in hosts}


def _parameters(old: Conf, new: Conf, spelling: Mapping[str, str]) -> Iterator[Change]:
    for key in sorted(old.keys() | new.keys()):
        name = _LOSES.get(key, spelling.get(key, key))
        values = [conf.get(key, DEFAULTS.get(name, "")) for conf in (old, new)]
        is_of_its_own = key.startswith((_NODE, _PARTITION, _CONTROLLER)) and not key.endswith("=DEFAULT")
        if values[0] == values[1] or key in KEEPS or is_of_its_own or _is_harmless(name, values[1]):
            continue
        is_known = name in LOSES
        yield _change(name, *values, LOSES.get(name, _UNKNOWN), pending=not is_known or name in LOSES_PENDING)


def _is_harmless(name: str, after: str) -> bool:
    return name.lower() == "preemptmode" and PREEMPTS_UNHARMED.issuperset(after.lower().split(","))


def _partitions(old: Conf, new: Conf) -> Iterator[Change]:
    for key in sorted(key for key in old if key.startswith(_PARTITION)):
        name = key[len(_PARTITION) :]
        if key not in new:
            why = "the jobs of a partition that is removed are cancelled, pending ones too"
            yield _change("PartitionName", name, "", why, pending=True) | {"partition": name}
            continue
        for word, before, after in _differing(old[key], new[key], PARTITION_KEEPS):
            if not _is_harmless(word, after):
                why = LOSES.get(_LOSES.get(word.lower(), ""), _UNKNOWN)
                yield _change(word, before, after, why, pending=why == _UNKNOWN) | {"partition": name}


def _machines(old: Conf, new: Conf) -> Iterator[Change]:
    names = [key for key in old if key.startswith(_NODE) and not key.endswith("=DEFAULT")]
    alike: dict[tuple[str, str, str], list[str]] = {}
    for key in names:
        if key in new:
            for change in _differing(old[key], new[key], NODE_KEEPS):
                alike.setdefault(change, []).append(key[len(_NODE) :])
    for change, nodes in alike.items():
        why = _NODE_LOSES.get(change[0].lower(), _UNKNOWN)
        yield _change(*change, why) | {"nodes": nodes}
    removed = [key[len(_NODE) :] for key in names if key not in new]
    if removed:
        why = "a node that is removed takes its jobs along, and those that wait for it (--nodelist)"
        yield _change("NodeName", ",".join(removed), "", why) | {"nodes": removed, "required": True}


def _differing(before: str, after: str, kept: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """What differs between two lines of ``Key=value`` words, but for what no job notices."""
    old, new = _words(before), _words(after)
    for name in [*old, *(name for name in new if name not in old)]:
        if name.lower() not in kept and old.get(name) != new.get(name):
            yield name, old.get(name, ""), new.get(name, "")


def _words(line: str) -> Conf:
    return {key: value for key, _, value in (word.partition("=") for word in line.split())}


def _cgroups(before: str, after: str) -> Iterator[Change]:
    old, new = parse_conf(before), parse_conf(after)
    for key in sorted(old.keys() | new.keys()):
        if key not in CGROUP_KEEPS and old.get(key) != new.get(key):
            yield _change(key, old.get(key, ""), new.get(key, ""), _UNKNOWN)


def _devices(before: str, after: str) -> Iterator[Change]:
    """What gres.conf says of devices: those of a job are kept by their place in it."""
    old, new = _device_lines(before), _device_lines(after)
    why = "jobs hold devices by their places in gres.conf"
    changed = [node for node, lines in old.items() if node and new.get(node, lines) != lines]
    if changed:
        yield _change("gres.conf", "devices", "other devices", why) | {"nodes": changed}
    if old.get("") != new.get(""):
        yield _change("gres.conf", *("; ".join(lines.get("", [])) for lines in (old, new)), why)


def _device_lines(text: str) -> dict[str, list[str]]:
    """The lines of each node; those of all below the empty name."""
    found: dict[str, list[str]] = {}
    for line in filter(None, (raw.split("#", 1)[0].strip() for raw in text.splitlines())):
        first, _, rest = line.partition(" ")
        key, _, nodes = first.partition("=")
        for node in hosts_of(nodes) if key.lower() == "nodename" else [""]:
            found.setdefault(node, []).append(rest.strip() if node else line)
    return found


def _scratch(before: str, after: str, nodes: Collection[str]) -> Iterator[Change]:
    """What takes jobs their private directories, on the nodes that stay."""
    old, new = parse_conf(before), parse_conf(after)
    why = "running jobs lose their private directories, and slurmd removes what it does not know"
    alike: dict[tuple[str, str], list[str]] = {}
    for key in sorted(old):
        node = key[len(_NODE) :] if key.startswith(_NODE) else ""
        if node in nodes and old[key] != new.get(key, ""):
            alike.setdefault((old[key], new.get(key, "")), []).append(node)
    for values, names in alike.items():
        yield _change("BasePath", *values, why) | {"nodes": names}
    for key in sorted(old.keys() | new.keys()):
        if not key.startswith(_NODE) and key not in SCRATCH_KEEPS and old.get(key) != new.get(key):
            yield _change(key, old.get(key, ""), new.get(key, ""), _UNKNOWN)


def squeue_arguments(change: Mapping[str, Any]) -> list[str]:
    """How squeue is asked for the jobs that a guarded change loses."""
    states = f"PENDING,{_STARTED}" if change["pending"] else _STARTED
    nodes = ["--nodelist", ",".join(change["nodes"])] if "nodes" in change else []
    partition = ["--partition", change["partition"]] if "partition" in change else []
    return ["--states", states, *nodes, *partition]


def who_waits_for(nodes: Collection[str], said: str) -> list[str]:
    """The jobs that wait for one of the nodes by its name, of what ``ASK_WHAT_WAITS`` said."""
    rows = (line.strip().partition("|") for line in said.splitlines() if "|" in line)
    return [job for job, _, required in rows if not {*nodes}.isdisjoint(hosts_of(required))]

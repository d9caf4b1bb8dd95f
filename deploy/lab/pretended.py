"""Nodes of a rehearsal that pretend to be as large as the site's: changes of Slurm's configuration.

Slurm then takes each node as configured (``config_overrides``) and binds no task to a core, of which there
are fewer than it believes. Nodes that are not there are cloud nodes that are switched off: jobs may ask for
them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_SIZE_KEYS = frozenset(
    {"cpus", "boards", "sockets", "socketsperboard", "corespersocket", "threadspercore", "realmemory"}
)
_RANGE = re.compile(r"(.*)\[(\d+)-(\d+)\](.*)")
_SWITCHED_OFF = ("SuspendProgram=/bin/true", "ResumeProgram=/bin/true", "SuspendTime=864000")


@dataclass(frozen=True)
class Size:
    """What the nodes of a group have on the site; ``names`` are those that are in the rehearsal."""

    group: str
    names: frozenset[str]
    cpus: int
    memory_mb: int
    nodes: int = 0
    """How many there are on the site, where that counts."""

    @property
    def absent(self) -> str:
        """Slurm's name for the nodes that are not in the rehearsal; empty where none are needed."""
        if self.nodes <= len(self.names):
            return ""
        numbers = f"{len(self.names) + 1}-{self.nodes}"
        return f"{re.sub('[^a-z0-9]+', '-', self.group.lower())}-pretended[{numbers}]"


def sizes_of(
    listed: Iterable[Mapping[str, int | str]], groups: Mapping[str, Sequence[str]], names: Iterable[str]
) -> list[Size]:
    """The sizes that a file of commands has, for the nodes of a rehearsal."""
    known = frozenset(names)
    return [
        Size(
            str(entry["group"]),
            known & frozenset(groups.get(str(entry["group"]), ())),
            int(entry["cpus"]),
            int(entry["memory_mb"]),
            int(entry.get("nodes", 0)),
        )
        for entry in listed
    ]


def slurm_conf(text: str, sizes: Sequence[Size], *, with_absent: bool) -> str:
    """A slurm.conf in which nodes have these sizes, and with those that are not there."""
    lines: list[str] = []
    partitions: list[str] = []
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "NodeName":
            lines += _nodes(line, sizes, with_absent=with_absent)
        elif key == "PartitionName":
            line = _with_memory(line, sizes)  # noqa: PLW2901
            partitions.append(_partition(line, sizes) if with_absent else line)
        elif key == "TaskPlugin":
            lines.append("TaskPlugin=task/cgroup")
        elif key == "SlurmdParameters":
            lines.append(f"SlurmdParameters={value},config_overrides")
        elif not (with_absent and key in {"SuspendProgram", "ResumeProgram", "SuspendTime"}):
            lines.append(line)
    if "SlurmdParameters=" not in text:
        lines.append("SlurmdParameters=config_overrides")
    lines += _SWITCHED_OFF if with_absent else ()
    return "\n".join([*lines, *partitions]) + "\n"


def cgroup_conf(text: str) -> str:
    """A cgroup.conf by which jobs are not held to cores."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("ConstrainCores=")) + (
        "\nConstrainCores=no\n"
    )


def _nodes(line: str, sizes: Sequence[Size], *, with_absent: bool) -> Iterator[str]:
    """The nodes of a line, each on its own where one of them has another size."""
    words = line.split()
    told = dict(word.partition("=")[::2] for word in words)
    names = expanded(told["NodeName"])
    addresses = expanded(told["NodeAddr"]) if "NodeAddr" in told else names
    if not any(size.names & {*names} for size in sizes):
        yield line
        return
    rest = [word for word in words if word.partition("=")[0] not in {"NodeName", "NodeAddr"}]
    without = [word for word in rest if word.partition("=")[0].lower() not in _SIZE_KEYS]
    for name, address in zip(names, addresses, strict=True):
        size = next((size for size in sizes if name in size.names), None)
        own = [f"CPUs={size.cpus}", f"RealMemory={size.memory_mb}", *without] if size else rest
        yield " ".join([f"NodeName={name}", f"NodeAddr={address}", *own])
        if size and with_absent and size.absent and name == min(size.names):
            kept = [word for word in own if not word.startswith("State=")]
            yield " ".join([f"NodeName={size.absent}", *kept, "State=CLOUD"])


def _partition(line: str, sizes: Sequence[Size]) -> str:
    """A partition with the nodes that are not there, too."""
    found = re.search(r" Nodes=(\S+)", line)
    if not found or found[1] == "ALL":
        return line
    there = {*expanded(found[1])}
    more = [size.absent for size in sizes if size.absent and size.names & there]
    return line.replace(found[0], f" Nodes={','.join([found[1], *more])}")


def _with_memory(line: str, sizes: Sequence[Size]) -> str:
    """A partition whose CPUs come with the memory that its smallest node has for each, where it had less."""
    named, found = re.search(r" Nodes=(\S+)", line), re.search(r" DefMemPerCPU=(\d+)", line)
    inside = {*expanded(named[1])} if named and named[1] != "ALL" else frozenset[str]()
    fitting = [size for size in sizes if size.names & inside]
    if not found or not fitting or not inside <= frozenset().union(*(size.names for size in fitting)):
        return line
    share = min(size.memory_mb // size.cpus for size in fitting)
    return line.replace(found[0], f" DefMemPerCPU={max(share, int(found[1]))}")


def expanded(hostlist: str) -> list[str]:
    """The words of a list as deploy writes it, in its order: ``n[1-3],n7``."""
    found: list[str] = []
    for part in re.split(r",(?![^\[]*\])", hostlist):
        match = _RANGE.fullmatch(part)
        if not match:
            found.append(part)
            continue
        before, first, last, after = match.groups()
        width = len(first)
        found += [f"{before}{number:0{width}}{after}" for number in range(int(first), int(last) + 1)]
    return found


def described(sizes: Iterable[Size], *, with_absent: bool) -> str:
    """What is pretended, in a line."""
    kinds = dict.fromkeys(f"{size.cpus} CPUs and {size.memory_mb} MiB ({size.group})" for size in sizes)
    absent = [f"{size.nodes} nodes of {size.group}" for size in sizes if size.absent]
    more = f"; {', '.join(absent)}, of which those that are not there run nothing" if with_absent else ""
    return f"nodes pretended to have {', '.join(kinds)}{more}"

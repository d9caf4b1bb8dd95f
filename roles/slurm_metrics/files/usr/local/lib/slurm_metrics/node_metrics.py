"""Nodes, as `scontrol --details --oneliner show nodes` has them.

Totals count every node once; what is said of a partition counts the nodes of several partitions in each.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from families import Labels, gauge
from prometheus_client import Metric

ARGUMENTS = ("scontrol", "--all", "--details", "--oneliner", "show", "nodes")
STATES = (
    *("idle", "mixed", "allocated", "completing", "draining", "drained", "down", "maint", "reserved"),
    *("planned", "reboot", "powered_down", "failing", "unknown"),
)
"""A node is in exactly one of these, as sinfo would call it."""
_MIB = 1 << 20
_KEYS = (
    *("NodeName", "CPUAlloc", "CPUTot", "CPULoad", "Gres", "GresUsed", "RealMemory", "AllocMem", "FreeMem"),
    *("State", "Partitions"),
)
_FIELD = re.compile(rf"(?:^| )({'|'.join(_KEYS)})=(\S*)")
_SWITCHED_OFF = frozenset({"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"})
"""By Slurm's power saving; the last of them: its machine may not have started yet."""
_REASON = re.compile(r" Reason=(.*?) \[([^\[\]@]+)@(\d+)\]")
# What stands before a second colon is the type, also where it begins with a digit: gpu:3090:4, gpu:1g.10gb:7.
_GPUS = re.compile(r"(?:^|,)gpu:(?:([^:,()]+):)?(\d+)(?=[,:]|$)")
_NOT_RESPONDING = "*"
_MARKS = "*~#!%$@^-+"
_BUSY = frozenset({"allocated", "mixed", "completing"})
# What takes a node away from jobs, the strongest first; each with the state that it makes.
_FLAGS = (
    ("POWERED_DOWN", "powered_down"),
    ("MAINTENANCE", "maint"),
    ("MAINT", "maint"),
    ("REBOOT_ISSUED", "reboot"),
    ("REBOOT", "reboot"),
    ("FAIL", "failing"),
)
_BASES = {"ERROR": "down", "FUTURE": "unknown", "INVAL": "down"}
_UNFIT = frozenset({"drained", "down", "maint", "reboot", "powered_down", "failing", "unknown", "draining"})


@dataclass(frozen=True)
class Node:
    """One node; memory in bytes, GPUs by type."""

    name: str
    state: str
    responds: bool
    is_switched_off: bool
    partitions: Sequence[str]
    cpus: int
    cpus_allocated: int
    load: float | None
    memory: int
    memory_allocated: int
    memory_free: int | None
    gpus: Mapping[str, int]
    gpus_allocated: Mapping[str, int]
    reason: str
    reason_by: str
    reason_since: float


def parse(text: str) -> list[Node]:
    """All nodes, a line each."""
    return [_node(line) for line in text.splitlines() if line.startswith("NodeName=")]


def _node(line: str) -> Node:
    # What a human wrote comes last, and may look like anything.
    found = dict(reversed(_FIELD.findall(line)))
    reason = _REASON.search(line)
    state, responds = effective_state(found.get("State", ""))
    partitions = found.get("Partitions", "")
    return Node(
        name=found["NodeName"],
        state=state,
        responds=responds,
        is_switched_off=bool(_SWITCHED_OFF & {*re.split(r"[^A-Z_]+", found.get("State", ""))}),
        partitions=partitions.split(",") if partitions else (),
        cpus=int(found.get("CPUTot", 0)),
        cpus_allocated=int(found.get("CPUAlloc", 0)),
        load=_number(found.get("CPULoad", "")),
        memory=int(found.get("RealMemory", 0)) * _MIB,
        memory_allocated=int(found.get("AllocMem", 0)) * _MIB,
        memory_free=None if (free := _number(found.get("FreeMem", ""))) is None else int(free) * _MIB,
        gpus=gpus_of(found.get("Gres", "")),
        gpus_allocated=gpus_of(found.get("GresUsed", "")),
        reason=reason[1] if reason else "",
        reason_by=reason[2] if reason else "",
        reason_since=float(reason[3]) if reason else 0.0,
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None  # N/A of a node that never answered


def gpus_of(gres: str) -> dict[str, int]:
    """gpu:a100:2(S:0-1),gpu:t4:1 as counts by type; those without a type are of the type gpu."""
    found: dict[str, int] = defaultdict(int)
    for kind, count in _GPUS.findall(re.sub(r"\([^)]*\)", "", gres)):
        found[kind or "gpu"] += int(count)
    return dict(found)


def effective_state(text: str) -> tuple[str, bool]:
    """The state that sinfo would show, and whether the node responds: DOWN*+DRAIN is drained and silent."""
    base, *flags = text.split("+")
    plain = base.rstrip(_MARKS)
    responds = _NOT_RESPONDING not in base and "NOT_RESPONDING" not in flags
    state = _BASES.get(plain, plain.lower())
    if "COMPLETING" in flags and state == "idle":
        state = "completing"
    if "DRAIN" in flags:
        return ("draining" if state in _BUSY else "drained"), responds
    for flag, effect in _FLAGS:
        # Slurm switches off, too, what it has given up.
        if flag in flags and (state, effect) != ("down", "powered_down"):
            return effect, responds
    if state == "idle":
        state = "reserved" if "RESERVED" in flags else "planned" if "PLANNED" in flags else state
    return (state if state in STATES else "unknown"), responds


def metrics(text: str, _: float) -> list[Metric]:
    """Per node, per partition, and of the cluster."""
    nodes = parse(text)
    return [*_of_nodes(nodes), *_of_cluster(nodes), *_of_partitions(nodes)]


def _of_nodes(nodes: Sequence[Node]) -> Iterator[Metric]:
    def one(name: str, meaning: str, values: Mapping[str, float]) -> Metric:
        return gauge(name, meaning, ["node"], {(node,): value for node, value in values.items()})

    yield gauge(
        "slurm_node_state",
        "1 for the state that a node is in.",
        ["node", "state"],
        {(node.name, node.state): 1 for node in nodes},
    )
    yield one(
        "slurm_node_responding",
        "Whether slurmd answers the controller.",
        {node.name: int(node.responds) for node in nodes},
    )
    yield one(
        "slurm_node_powered_down",
        "Whether Slurm's power saving has the node switched off, or waits for it to start.",
        {node.name: int(node.is_switched_off) for node in nodes},
    )
    yield gauge(
        "slurm_node_partition",
        "1 for each partition of a node.",
        ["node", "partition"],
        {(node.name, partition): 1 for node in nodes for partition in node.partitions},
    )
    yield gauge(
        "slurm_node_reason_timestamp_seconds",
        "When somebody gave the reason why a node is out of service, with that reason.",
        ["node", "reason", "user"],
        {
            (node.name, node.reason, node.reason_by): node.reason_since
            for node in nodes
            if node.reason and node.state in _UNFIT
        },
    )
    yield one("slurm_node_cpus", "CPUs of a node.", {node.name: node.cpus for node in nodes})
    yield one(
        "slurm_node_cpus_allocated",
        "CPUs of a node that jobs have.",
        {node.name: node.cpus_allocated for node in nodes},
    )
    yield one(
        "slurm_node_cpu_load",
        "The load that slurmd reported.",
        {node.name: node.load for node in nodes if node.load is not None},
    )
    yield one("slurm_node_memory_bytes", "Memory of a node.", {node.name: node.memory for node in nodes})
    yield one(
        "slurm_node_memory_allocated_bytes",
        "Memory of a node that jobs have asked for.",
        {node.name: node.memory_allocated for node in nodes},
    )
    yield one(
        "slurm_node_memory_free_bytes",
        "Memory that the node's system calls free.",
        {node.name: node.memory_free for node in nodes if node.memory_free is not None},
    )
    yield gauge(
        "slurm_node_gpus",
        "GPUs of a node.",
        ["node", "type"],
        {(node.name, kind): count for node in nodes for kind, count in node.gpus.items()},
    )
    yield gauge(
        "slurm_node_gpus_allocated",
        "GPUs of a node that jobs have.",
        ["node", "type"],
        {(node.name, kind): node.gpus_allocated.get(kind, 0) for node in nodes for kind in node.gpus},
    )


def _shares(node: Node, whole: int, allocated: int) -> dict[str, int]:
    """How much jobs have, could have, and cannot have."""
    rest = max(whole - allocated, 0)
    unfit = node.state in _UNFIT
    return {"allocated": allocated, "idle": 0 if unfit else rest, "down": rest if unfit else 0}


def _of_cluster(nodes: Sequence[Node]) -> Iterator[Metric]:
    states: dict[Labels, float] = {(state,): 0 for state in STATES}
    cpus: dict[Labels, float] = defaultdict(float)
    memory: dict[Labels, float] = defaultdict(float)
    gpus: dict[Labels, float] = defaultdict(float)
    for node in nodes:
        states[node.state,] += 1
        for state, count in _shares(node, node.cpus, node.cpus_allocated).items():
            cpus[state,] += count
        for state, count in _shares(node, node.memory, node.memory_allocated).items():
            memory[state,] += count
        for kind, whole in node.gpus.items():
            for state, count in _shares(node, whole, node.gpus_allocated.get(kind, 0)).items():
                gpus[kind, state] += count
    yield gauge("slurm_nodes", "Nodes by state, each once.", ["state"], states)
    yield gauge("slurm_cpus", "CPUs that jobs have, could have, or cannot have.", ["state"], cpus)
    yield gauge("slurm_memory_bytes", "Memory that jobs have, could have, or cannot have.", ["state"], memory)
    yield gauge("slurm_gpus", "GPUs that jobs have, could have, or cannot have.", ["type", "state"], gpus)


def _of_partitions(nodes: Sequence[Node]) -> Iterator[Metric]:
    states: dict[Labels, float] = defaultdict(float)
    cpus: dict[Labels, float] = defaultdict(float)
    memory: dict[Labels, float] = defaultdict(float)
    gpus: dict[Labels, float] = defaultdict(float)
    for partition in {partition for node in nodes for partition in node.partitions}:
        states.update({(partition, state): 0 for state in STATES})
    for node in nodes:
        of_cpus = _shares(node, node.cpus, node.cpus_allocated)
        of_memory = _shares(node, node.memory, node.memory_allocated)
        of_gpus = _shares(node, sum(node.gpus.values()), sum(node.gpus_allocated.values()))
        for partition in node.partitions:
            states[partition, node.state] += 1
            for state in of_cpus:
                cpus[partition, state] += of_cpus[state]
                memory[partition, state] += of_memory[state]
                gpus[partition, state] += of_gpus[state]
    labels = ["partition", "state"]
    yield gauge("slurm_partition_nodes", "Nodes of a partition by state.", labels, states)
    yield gauge("slurm_partition_cpus", "CPUs of a partition, as slurm_cpus.", labels, cpus)
    yield gauge(
        "slurm_partition_memory_bytes", "Memory of a partition, as slurm_memory_bytes.", labels, memory
    )
    yield gauge("slurm_partition_gpus", "GPUs of a partition of all types, as slurm_gpus.", labels, gpus)

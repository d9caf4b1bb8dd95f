"""Partitions: names, members, limits that contradict each other."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from deploy.content import roles
from deploy.errors import Finding, Severity
from deploy.site.inventory import NODE, Site
from deploy.site.node_sets import expanded

VARIABLE = "slurmctld_partitions"

_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<rest>\d+(?::\d+){0,2})")
_SHOWN = 5

Partition = Mapping[str, Any]


def check_partitions(site: Site) -> Iterator[Finding]:
    """What is wrong with the partitions; their keys and types are the schema's business."""
    for master in site.controllers:
        declared = master.variables.get(VARIABLE)
        if isinstance(declared, list):
            partitions: list[Partition] = [entry for entry in declared if isinstance(entry, dict)]
            yield from _Partitions(site, master.where(VARIABLE), partitions).findings()


class _Partitions:
    """The partitions of a site, with the place that declares them."""

    def __init__(self, site: Site, where: str, partitions: list[Partition]) -> None:
        self._site = site
        self._where = where
        self._partitions = partitions
        self._nodes = {node.name for node in site.nodes}

    def findings(self) -> Iterator[Finding]:
        """All of them."""
        if not self._partitions:
            yield self._finding("no-partition", "there is no partition, so no job could run", "declare one")
            return
        yield from self._names()
        yield from self._defaults()
        covered: set[str] = set()
        for partition in self._partitions:
            yield from self._members(partition, covered)
            yield from self._contradictions(partition)
            yield from self._written_twice(partition)
        beside = sorted(self._nodes - covered)
        if beside:
            yield self._finding(
                "node-in-no-partition",
                f"no partition has {', '.join(beside[:_SHOWN])}{' …' if len(beside) > _SHOWN else ''}",
                "add a partition without groups and nodes, which holds all nodes, or name them in one",
                Severity.WARNING,
            )

    def _finding(
        self, reference: str, message: str, hint: str, severity: Severity = Severity.ERROR
    ) -> Finding:
        return Finding(self._where, reference, message, hint, severity)

    def _names(self) -> Iterator[Finding]:
        seen: dict[str, str] = {}
        for partition in self._partitions:
            name = _name(partition)
            other = seen.get(name.lower())
            if other is None:
                seen[name.lower()] = name
            elif other == name:
                yield self._finding(
                    "duplicate-partition", f"partition {name} is declared twice", "remove one of them"
                )
            else:
                yield self._finding(
                    "partitions-alike",
                    f"partitions {other} and {name} differ in capital letters only",
                    "give one of them another name, which nobody takes for the other's",
                    Severity.WARNING,
                )

    def _defaults(self) -> Iterator[Finding]:
        defaults = [_name(partition) for partition in self._partitions if partition.get("default") is True]
        if len(defaults) > 1:
            yield self._finding(
                "several-default-partitions",
                f"more than one default partition: {', '.join(defaults)}",
                "leave default: true on one of them",
            )
        if not defaults:
            yield self._finding(
                "no-default-partition",
                "no partition is the default: a job that names none is refused",
                "write default: true on one of them",
                Severity.WARNING,
            )

    def _members(self, partition: Partition, covered: set[str]) -> Iterator[Finding]:
        """What is wrong with a partition's groups and nodes; its nodes are added to ``covered``."""
        name, groups, expressions = _name(partition), _texts(partition, "groups"), _texts(partition, "nodes")
        if not groups and not expressions:
            covered |= self._nodes
        for group in groups:
            members = set(self._site.groups.get(group, ())) & self._nodes
            covered |= members
            if not members:
                known = sorted(g for g in self._site.groups if set(self._site.groups[g]) & self._nodes)
                yield self._finding(
                    "partition-without-nodes",
                    f"partition {name}: group {group!r} holds no compute node",
                    f"known groups: {', '.join(known)}",
                )
        for expression in expressions:
            members, reason = expanded(expression)
            unknown = sorted(members - self._nodes) or ([] if not reason else [expression])
            covered |= members & self._nodes
            if unknown:
                yield self._finding(
                    "partition-unknown-node",
                    f"partition {name} names {', '.join(unknown[:_SHOWN])}: {reason or f'not in [{NODE}]'}",
                    f"name hosts of [{NODE}], for example node[1-4]",
                )

    def _contradictions(self, partition: Partition) -> Iterator[Finding]:
        name = _name(partition)
        shortest, longest = _minutes(partition.get("default_time")), _minutes(partition.get("max_time"))
        if shortest is not None and longest is not None and shortest > longest:
            yield self._finding(
                "partition-contradiction",
                f"partition {name}: default_time {partition['default_time']} is longer than max_time "
                f"{partition['max_time']}, so a job that asks for no time is refused",
                "lower default_time or raise max_time",
            )
        fewest, most = partition.get("min_nodes"), partition.get("max_nodes")
        if isinstance(fewest, int) and isinstance(most, int) and fewest > most:
            yield self._finding(
                "partition-contradiction",
                f"partition {name}: min_nodes {fewest} is more than max_nodes {most}, so no job fits",
                "lower min_nodes or raise max_nodes",
            )
        if _texts(partition, "allow_accounts") and _texts(partition, "deny_accounts"):
            yield self._finding(
                "partition-contradiction",
                f"partition {name}: Slurm ignores deny_accounts where allow_accounts is set",
                "remove one of the two",
            )

    def _written_twice(self, partition: Partition) -> Iterator[Finding]:
        """Further parameters of a line that has them already; Slurm does not care for their case."""
        further = partition.get("parameters")
        if not isinstance(further, dict):
            return
        own = {"partitionname": "name", "nodes": "nodes and groups", "default": "default"}
        own |= {word.lower(): key for key, word in _words_of_keys().items() if key in partition}
        if "sharing" in partition:
            own["oversubscribe"] = "sharing"
        seen: dict[str, str] = {}
        for word in map(str, further):
            first = own.get(word.lower()) or seen.setdefault(word.lower(), word)
            if first != word:
                yield self._finding(
                    "parameter-written-twice",
                    f"partition {_name(partition)}: parameters has {word}, which {first} says, too",
                    "keep one of them",
                )


@cache
def _words_of_keys() -> Mapping[str, str]:
    """Which parameter of a partition's line each key of slurmctld_partitions becomes."""
    text = (roles() / "slurmctld" / "vars" / "main.yml").read_text(encoding="utf-8")
    words: Mapping[str, str] = yaml.safe_load(text)["__slurmctld_partition_keys"]
    return words


def _name(partition: Partition) -> str:
    return str(partition.get("name", "?"))


def _texts(partition: Partition, key: str) -> list[str]:
    value = partition.get(key)
    return [str(item) for item in value] if isinstance(value, list) else []


def _minutes(text: object) -> float | None:
    """A time limit in minutes; None where there is none, or no number."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    if not match:
        return None
    parts = [int(part) for part in match["rest"].split(":")]
    if match["days"]:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return (int(match["days"]) * 24 + hours) * 60 + minutes + seconds / 60
    hours, minutes, seconds = {1: (0, *parts, 0), 2: (0, *parts), 3: tuple(parts)}[len(parts)]
    return hours * 60 + minutes + seconds / 60

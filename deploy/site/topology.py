"""Switches and blocks: names, members, and whether they make a tree that Slurm takes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from deploy.errors import Finding, Severity
from deploy.site.inventory import NODE, Host, Site
from deploy.site.node_lists import fold
from deploy.site.node_sets import expanded

SWITCHES, BLOCKS, SIZES = "slurmctld_switches", "slurmctld_blocks", "slurmctld_block_sizes"
_SHOWN = 5

Entry = Mapping[str, Any]


def check_topology(site: Site) -> Iterator[Finding]:
    """What is wrong with the switches or blocks; their keys and types are the schema's business."""
    for master in site.controllers:
        switches, blocks = _entries(master, SWITCHES), _entries(master, BLOCKS)
        if switches and blocks:
            yield Finding(
                master.where(BLOCKS),
                "topology-contradiction",
                f"{SWITCHES} and {BLOCKS} are both set, and Slurm goes by one of them",
                "keep one of them",
            )
        elif switches:
            yield from _Units(site, master, SWITCHES, switches).of_a_tree()
        elif blocks:
            yield from _Units(site, master, BLOCKS, blocks).of_blocks()


def _entries(host: Host, variable: str) -> list[Entry]:
    declared = host.variables.get(variable)
    return [entry for entry in declared if isinstance(entry, dict)] if isinstance(declared, list) else []


class _Units:
    """The switches or the blocks of a site."""

    def __init__(self, site: Site, master: Host, variable: str, entries: list[Entry]) -> None:
        self._site = site
        self._master = master
        self._where = master.where(variable)
        self._word = "switch" if variable == SWITCHES else "block"
        self._entries = entries
        self._compute = {node.name for node in site.nodes}
        self._found: dict[str, set[str]] = {}

    def _finding(
        self, reference: str, message: str, hint: str, severity: Severity = Severity.ERROR
    ) -> Finding:
        return Finding(self._where, reference, message, hint, severity)

    def of_a_tree(self) -> Iterator[Finding]:
        """Of switches."""
        yield from self._names()
        known = {_name(entry) for entry in self._entries}
        above: dict[str, str] = {}
        for entry in self._entries:
            name, below = _name(entry), _texts(entry, "switches")
            has_nodes = bool(_texts(entry, "nodes") or _texts(entry, "groups"))
            if bool(below) == has_nodes:
                yield self._finding(
                    "topology-contradiction",
                    f"switch {name} has {'nodes and switches' if below else 'neither nodes nor switches'}",
                    "give it nodes or groups of nodes, or the switches below it",
                )
            for child in below:
                if child not in known:
                    yield self._finding(
                        "topology-unknown-switch",
                        f"switch {name} names {child}, which is no switch",
                        f"name one of {', '.join(sorted(known - {name}))}, or declare it",
                    )
                elif child in above or child == name:
                    yield self._finding(
                        "topology-contradiction",
                        f"switch {child} is below {above.get(child, name)} and below {name}",
                        "a switch is below one other",
                    )
                above.setdefault(child, name)
        if ring := _ring(above):
            yield self._finding(
                "topology-contradiction",
                f"switches are above each other: {' -> '.join(ring)}",
                "a tree has one switch that is below none",
            )
        yield from self._members()

    def of_blocks(self) -> Iterator[Finding]:
        """Of blocks."""
        yield from self._names()
        yield from self._members()
        sizes = self._master.variables.get(SIZES)
        if not isinstance(sizes, list) or not sizes or not isinstance(sizes[0], int) or sizes[0] < 1:
            return
        least = sizes[0]
        if wrong := [size for size in sizes if not _is_multiple(size, least)]:
            yield Finding(
                self._master.where(SIZES),
                "topology-block-size",
                f"{SIZES} has {wrong[0]}, which is not {least} times a power of two",
                f"write sizes as in [{least}, {least * 2}, {least * 4}]",
            )
        for name, nodes in self._found.items():
            if 0 < len(nodes) < least:
                yield self._finding(
                    "topology-block-size",
                    f"block {name} has {len(nodes)} nodes, fewer than the least of {SIZES}, {least}",
                    f"give it {least} nodes, or lower the first of {SIZES}",
                )

    def _names(self) -> Iterator[Finding]:
        for name, count in Counter(map(_name, self._entries)).items():
            if count > 1:
                yield self._finding(
                    "topology-contradiction", f"{self._word} {name} is declared twice", "remove one of them"
                )

    def _members(self) -> Iterator[Finding]:
        """Nodes that are not there, in two of them, or in none."""
        place: dict[str, str] = {}
        for entry in self._entries:
            name, nodes = _name(entry), set[str]()
            for group in _texts(entry, "groups"):
                inside = set(self._site.groups.get(group, ())) & self._compute
                nodes |= inside
                if not inside:
                    yield self._finding(
                        "topology-unknown-node",
                        f"{self._word} {name}: group {group!r} holds no compute node",
                        f"name a group of hosts of [{NODE}]",
                    )
            for expression in _texts(entry, "nodes"):
                named, reason = expanded(expression)
                nodes |= named & self._compute
                if reason or named - self._compute:
                    said = reason or f"not in [{NODE}]"
                    yield self._finding(
                        "topology-unknown-node",
                        f"{self._word} {name} names {_shown(named - self._compute) or expression}: {said}",
                        f"name hosts of [{NODE}], for example node[1-4]",
                    )
            for node in sorted(nodes & set(place)):
                yield self._finding(
                    "topology-contradiction",
                    f"{node} is in {self._word} {place[node]} and in {name}",
                    "a node is in one of them",
                )
            place |= dict.fromkeys(nodes, name)
            self._found[name] = nodes
        if beside := self._compute - set(place):
            yield self._finding(
                "node-beside-topology",
                f"no {self._word} has {_shown(beside)}: a job gets it together with no other node",
                f"name it in a {self._word}",
                Severity.WARNING,
            )


def _name(entry: Entry) -> str:
    return str(entry.get("name", "?"))


def _texts(entry: Entry, key: str) -> list[str]:
    value = entry.get(key)
    return [str(item) for item in value] if isinstance(value, list) else []


def _shown(names: set[str]) -> str:
    chosen = sorted(names)
    return fold(chosen[:_SHOWN]) + (" …" if len(chosen) > _SHOWN else "")


def _is_multiple(size: object, least: int) -> bool:
    if not isinstance(size, int) or size < least or size % least:
        return False
    times = size // least
    return times & (times - 1) == 0


def _ring(above: Mapping[str, str]) -> list[str]:
    """A way that leads from a switch up to itself; empty where there is none."""
    for start in above:
        way = [start]
        while (upper := above.get(way[-1])) is not None:
            if upper in way:
                return [*way[way.index(upper) :], upper]
            way.append(upper)
    return []

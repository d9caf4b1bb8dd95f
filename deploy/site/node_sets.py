"""Nodes as an entry of the inventory names them: by groups, and as Slurm writes lists of them."""

import re
from collections.abc import Mapping
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from deploy.site.inventory import Site

_RANGE = re.compile(r"(\d+)-(\d+)")
_MOST_NODES = 65536
"""Slurm has no more nodes; a range beyond them is a slip that would take all memory to expand."""
_MOST_DIGITS = 18


def members(site: Site, entry: Mapping[str, Any]) -> NodeSet:
    """The compute nodes of an entry's ``groups``, and its ``nodes``; empty when it names neither."""
    compute = {node.name for node in site.nodes}
    names = NodeSet()
    for group in entry.get("groups") or []:
        names.update(NodeSet.fromlist([name for name in site.groups.get(group, ()) if name in compute]))
    for expression in entry.get("nodes") or []:
        names.update(NodeSet(expression))
    return names


def expanded(expression: str) -> tuple[set[str], str]:
    """The nodes that an expression names, or why it names none."""
    if any(_is_vast(first, last) for first, last in _RANGE.findall(expression)):
        return set(), f"more than {_MOST_NODES} nodes"
    try:
        nodes = NodeSet(expression, resolver=RESOLVER_NOGROUP)
    except (NodeSetException, ValueError) as problem:
        return set(), str(problem)
    return (set(nodes), "") if len(nodes) <= _MOST_NODES else (set(), f"more than {_MOST_NODES} nodes")


def _is_vast(first: str, last: str) -> bool:
    return max(len(first), len(last)) > _MOST_DIGITS or int(last) - int(first) > _MOST_NODES

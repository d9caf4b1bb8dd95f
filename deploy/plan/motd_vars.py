"""What the role motd says of the cluster: its partitions, in words."""

from collections.abc import Iterable, Mapping
from typing import Any

from ClusterShell.NodeSet import NodeSet

from deploy.site.hardware import Hardware

Variables = dict[str, Any]

_NO_LIMIT = "no limit"


def partitions_in_words(
    partitions: Iterable[Mapping[str, Any]],
    members: Mapping[str, Mapping[str, Any]],
    hardware: Mapping[str, Hardware],
) -> list[Variables]:
    """The value of ``motd_partitions``: ``members`` are the wired nodes, ``hardware`` is by node."""
    return [
        {
            "name": f"{partition['name']}{'*' if partition.get('default') else ''}",
            "nodes": members[partition["name"]]["nodes"],
            "has": _has([hardware[node] for node in NodeSet(members[partition["name"]]["nodes"])]),
            "longest": str(partition.get("max_time") or _NO_LIMIT),
        }
        for partition in partitions
        if members.get(partition["name"], {}).get("nodes")
    ]


def _has(nodes: Iterable[Hardware]) -> str:
    """What each of some nodes has, from the least to the most where they differ."""
    listed = list(nodes)
    cpus = _range(int(node["cpus"]) for node in listed)
    memory = _range(round(int(node["memory_mb"]) / 1024) for node in listed)
    gpus = sorted(
        {
            " + ".join(f"{gpu['count']} {gpu['type']}" for gpu in node["gpus"])
            for node in listed
            if node.get("gpus")
        }
    )
    return ", ".join([f"{cpus} CPUs", f"{memory} GiB", *([" or ".join(gpus)] if gpus else [])])


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return str(found[0]) if len(found) == 1 else f"{found[0]}-{found[-1]}"

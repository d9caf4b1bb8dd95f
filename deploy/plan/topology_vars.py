"""What Slurm is told of the fabric: the nodes of each switch and block of the inventory."""

from collections.abc import Collection, Mapping
from typing import Any

from ClusterShell.NodeSet import NodeSet

from deploy.site.inventory import Site
from deploy.site.node_lists import slurm_list
from deploy.site.node_sets import members
from deploy.site.topology import BLOCKS, SWITCHES


def topology_nodes(site: Site, known: Collection[str]) -> dict[str, str]:
    """By switch or block its nodes that Slurm knows, as it writes them; empty for a switch above others.

    What has no such node, nor anything below it, is left out: Slurm would refuse it.
    """
    entries = {str(entry["name"]): entry for entry in _declared(site)}
    inside = NodeSet.fromlist(sorted(known))
    nodes = {name: members(site, entry) & inside for name, entry in entries.items()}
    found = {name for name in entries if nodes[name]}
    while upper := {n for n in entries if n not in found and found & {*(entries[n].get("switches") or ())}}:
        found |= upper
    return {name: slurm_list(nodes[name]) for name in entries if name in found}


def _declared(site: Site) -> list[Mapping[str, Any]]:
    controller = site.controller
    return [*(controller.value(SWITCHES) or []), *(controller.value(BLOCKS) or [])]

"""The fabric as Slurm gets it: what it does not know yet is left out, up to the top."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.plan.topology_vars import topology_nodes
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

_TREE = [
    {"name": "leaf1", "nodes": ["node[1-2]"]},
    {"name": "leaf2", "nodes": ["node9"]},
    {"name": "upper", "switches": ["leaf2"]},
    {"name": "top", "switches": ["leaf1", "upper"]},
]


@pytest.mark.parametrize(
    ("said", "known", "expected"),
    [
        ({}, ["node1", "node2"], {}),
        ({"slurmctld_switches": _TREE}, ["node1", "node2"], {"leaf1": "node[1-2]", "top": ""}),
        ({"slurmctld_switches": _TREE}, ["node1"], {"leaf1": "node1", "top": ""}),
        ({"slurmctld_switches": _TREE}, [], {}),
        (
            {"slurmctld_blocks": [{"name": "b1", "groups": ["slurm-node"]}]},
            ["node1", "node2"],
            {"b1": "node[1-2]"},
        ),
    ],
)
def test_nodes_of_switches_and_blocks(
    tmp_path: Path, said: dict[str, Any], known: list[str], expected: dict[str, str]
) -> None:
    site = read_site(write_site(tmp_path, files={"group_vars/all.yml": yaml.safe_dump(said)}))
    assert topology_nodes(site, known) == expected

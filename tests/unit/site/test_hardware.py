from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.site.hardware import hardware_of, keep, read_contract, undiscovered
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

FOUND = {"cpus": 8, "sockets": 1, "cores_per_socket": 8, "threads_per_core": 1, "memory_mb": 9000, "gpus": []}


def test_declared_values_win_and_hide_the_found_topology(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    assert hardware_of(site.hosts["node1"], {"node1": FOUND}) == {
        "cpus": 4,
        "memory_mb": 8000,
        "gpus": [{"type": "a100", "count": 2}],
    }
    assert undiscovered(site, {}) == ()


def test_what_is_missing_is_discovered_once(tmp_path: Path) -> None:
    site = read_site(
        write_site(tmp_path, files={"group_vars/slurm-node.yml": "slurmd_hardware: {memory_mb: 512}\n"})
    )
    assert [node.name for node in undiscovered(site, read_contract(site))] == ["node1", "node2"]
    keep(site, {"node1": FOUND})
    contract = read_contract(site)
    assert "memory_mb" not in contract["node1"]
    assert [node.name for node in undiscovered(site, contract)] == ["node2"]
    assert hardware_of(site.hosts["node1"], contract) == FOUND | {"memory_mb": 512}


def test_a_later_smaller_answer_changes_nothing(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, files={"group_vars/slurm-node.yml": "slurmd_weight: 1\n"}))
    keep(site, {"node1": FOUND})
    keep(site, {"node1": FOUND | {"cpus": 2}})
    assert read_contract(site)["node1"]["cpus"] == 8


@pytest.mark.parametrize("text", ["node1: [", "node1: {cpu: 4}", "- node1"])
def test_a_broken_contract(tmp_path: Path, text: str) -> None:
    site = read_site(write_site(tmp_path, files={"hardware.yml": text}))
    with pytest.raises(DeployError) as problem:
        read_contract(site)
    assert problem.value.findings[0].reference == "hardware-invalid"

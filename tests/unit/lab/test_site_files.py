from pathlib import Path

import pytest
import yaml

from deploy.lab.site_files import group_vars, inventory
from deploy.site.checks import site_findings
from deploy.site.inventory import CACHE, NFS, read_site

ADDRESSES = {"ctl1": "10.213.7.2", "login1": "10.213.7.3", "node1": "10.213.7.11", "node2": "10.213.7.12"}


def test_ansible_reads_the_inventory(tmp_path: Path) -> None:
    file = tmp_path / "inventory.ini"
    file.write_text(inventory(ADDRESSES))
    site = read_site(file)
    assert set(site.hosts) == set(ADDRESSES)
    groups = {name: set(members) for name, members in site.groups.items()}
    assert groups["slurm-master"] == {"ctl1"}
    assert groups["slurm-login"] == {"login1"}
    assert groups["slurm-node"] == {"node1", "node2"}
    assert groups["slurm-cluster"] == set(ADDRESSES)


@pytest.mark.parametrize(
    ("wishes", "watched", "cached"),
    [({}, [], []), ({"monitoring": True}, ["ctl1"], []), ({"package_cache": True}, [], ["ctl1"])],
)
def test_the_controller_does_what_else_is_asked_for(
    tmp_path: Path, wishes: dict[str, bool], watched: list[str], cached: list[str]
) -> None:
    file = tmp_path / "inventory.ini"
    file.write_text(inventory(ADDRESSES, **wishes))
    site = read_site(file)
    assert [host.name for host in site.metrics] == watched
    assert [host.name for host in site.group(CACHE)] == cached


@pytest.mark.parametrize("monitoring", [False, True])
def test_nothing_is_wrong_with_the_site_of_a_lab(tmp_path: Path, *, monitoring: bool) -> None:
    file = tmp_path / "inventory.ini"
    file.write_text(inventory(ADDRESSES, monitoring=monitoring))
    (tmp_path / "group_vars").mkdir()
    for name, text in group_vars(release="trixie", gpus=2, cgroup_v1=True).items():
        (tmp_path / "group_vars" / name).write_text(text)
    assert [str(finding) for finding in site_findings(read_site(file))] == []


@pytest.mark.parametrize("release", ["trixie", "bookworm"])
@pytest.mark.parametrize("gpus", [0, 2])
def test_machines_with_a_kernel_of_their_own_are_a_site_as_any(
    tmp_path: Path, *, release: str, gpus: int
) -> None:
    file = tmp_path / "inventory.ini"
    file.write_text(inventory(ADDRESSES, own_kernel=True))
    (tmp_path / "group_vars").mkdir()
    for name, text in group_vars(release=release, gpus=gpus, cgroup_v1=True, own_kernel=True).items():
        (tmp_path / "group_vars" / name).write_text(text)
    site = read_site(file)
    assert [str(finding) for finding in site_findings(site)] == []
    assert [host.name for host in site.group(NFS)] == ["ctl1"]
    assert "slurmctld_cgroup_parameters" not in site.controller.variables
    node = site.hosts["node1"]
    assert "memory_mb" not in (node.variables.get("slurmd_hardware") or {})


@pytest.mark.parametrize(
    ("release", "cgroup_v1", "parameters"),
    [
        ("trixie", False, None),
        ("bookworm", False, None),
        ("trixie", True, {"CgroupPlugin": "cgroup/v1"}),
        ("bookworm", True, {"CgroupPlugin": "cgroup/v1", "CgroupAutomount": "no"}),
    ],
)
def test_cgroup_exceptions(*, release: str, cgroup_v1: bool, parameters: dict[str, str] | None) -> None:
    controller = yaml.safe_load(group_vars(release=release, gpus=2, cgroup_v1=cgroup_v1)["slurm-master.yml"])
    assert controller.get("slurmctld_cgroup_parameters") == parameters
    assert controller["users_create_home"] is True


@pytest.mark.parametrize(
    ("gpus", "hardware"),
    [(0, {"memory_mb": 1024}), (3, {"memory_mb": 1024, "gpus": [{"type": "a100", "count": 3}]})],
)
def test_declared_hardware(gpus: int, hardware: dict[str, object]) -> None:
    nodes = yaml.safe_load(group_vars(release="trixie", gpus=gpus, cgroup_v1=True)["slurm-node.yml"])
    assert nodes == {
        "nvidia_driver_source": "none",
        "scratch_may_fill_root": True,
        "slurmd_hardware": hardware,
    }

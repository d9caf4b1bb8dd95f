"""Sites that come from DeepOps."""

from pathlib import Path

import pytest

from deploy.errors import Severity
from deploy.site.checks import check_site
from deploy.site.deepops import MISSING, RENAMED, deepops_finding
from deploy.site.inventory import read_site
from deploy.site.schema import options

# The groups, the commented lines and [all:vars] of config/inventory as DeepOps ships it, filled in for one
# master and three nodes.
INVENTORY = """\
[all]
#mgmt01     ansible_host=10.0.0.1
#mgmt02     ansible_host=10.0.0.2
login01    ansible_host=10.0.1.1
gpu01      ansible_host=10.0.2.1
gpu02      ansible_host=10.0.2.2
gpu03      ansible_host=10.0.2.3

[kube_control_plane]
#mgmt01
#mgmt02

# Odd number of hosts
[etcd]
#mgmt01

[kube_node]
#gpu01

[k8s_cluster:children]
kube_control_plane
kube_node

[slurm-master]
login01

[slurm-nfs]
login01

[slurm-node]
gpu01
gpu02
gpu03

# To give a service hosts of its own, write [group] instead of [group:children]
[slurm-cache:children]
slurm-master

[slurm-nfs-client:children]
slurm-node

[slurm-metric:children]
slurm-master

[slurm-login:children]
slurm-master

[slurm-cluster:children]
slurm-master
slurm-node
slurm-cache
slurm-nfs
slurm-metric
slurm-login

[all:vars]
# How to log in
#ansible_user=ubuntu
#ansible_ssh_private_key_file='~/.ssh/id_rsa'
# Through a bastion
#ansible_ssh_common_args='-o ProxyCommand="ssh -W %h:%p -q ubuntu@10.0.0.1"'
"""


@pytest.mark.parametrize("commented", [True, False])
def test_the_inventory_passes_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, commented: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    text = INVENTORY if commented else INVENTORY.replace("#ansible_", "ansible_")
    (tmp_path / "inventory").write_text(text)
    site = read_site(Path("inventory"))
    assert [host.name for host in site.controllers] == ["login01"]
    assert [host.name for host in site.logins] == ["login01"]
    assert [host.name for host in site.nodes] == ["gpu01", "gpu02", "gpu03"]
    assert [str(finding) for finding in check_site(site)] == []


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("slurm_enable_ha", True, Severity.ERROR),
        ("slurm_enable_ha", False, Severity.WARNING),
        ("slurm_manage_gpus", True, Severity.WARNING),
        ("slurm_manage_gpus", False, Severity.ERROR),
        ("slurm_return_to_service", 0, Severity.ERROR),
        ("slurm_install_pyxis", True, Severity.ERROR),
        ("slurm_install_pyxis", "no", Severity.WARNING),
        ("nfs_exports", [{"path": "/home"}], Severity.ERROR),
        ("nfs_exports", [], Severity.WARNING),
        ("kube_enable_rsyslog_server", True, Severity.WARNING),
        ("maas_repo", "ppa", Severity.WARNING),
    ],
)
def test_what_would_be_missed_is_an_error(name: str, value: object, severity: Severity) -> None:
    finding = deepops_finding("all.yml:1", name, value)
    assert finding
    assert finding.severity is severity
    assert name in finding.message


def test_what_it_is_now_is_named() -> None:
    for name, renamed in RENAMED.items():
        finding = deepops_finding("", name, "x")
        assert finding
        assert f"{name} is now {renamed.now}" in finding.message


def test_what_is_to_be_written_exists_here() -> None:
    written = {renamed.write.split(":", 1)[0] for renamed in RENAMED.values() if ": " in renamed.write}
    assert len(written) > 10
    assert written <= options().keys()


def test_no_variable_of_a_role_is_taken_for_one_of_deepops() -> None:
    assert [name for name in options() if deepops_finding("", name, 1)] == []
    assert deepops_finding("", "slurm_acounts_users", 1) is None


def test_no_variable_is_listed_twice() -> None:
    patterns = [pattern for missing in MISSING for pattern in missing.names.split()]
    assert sorted(set(patterns)) == sorted(patterns)
    assert not RENAMED.keys() & set(patterns)

from typing import Any

import pytest

from deploy.validate.result import Outcome
from tests.unit.validate.clusters import ADDRESSES, GROUPS, NODES, Change, Cluster, by_outcome, expect_fault

CLIENTS = ("login1", *NODES)
OLD, NEW = "6.12.48+deb13-amd64", "6.12.57+deb13-amd64"
LIMITS = [
    {"path": "/home", "each_user": {"space": "1G"}, "groups": [{"name": "physics", "space": "1T"}]},
    {"path": "/data", "users": [{"name": "ann", "space": "1G"}]},
    {"path": "/open", "users": []},
]


def runs(cluster: Cluster, node: str, kernel: str, *installed: str, system: str = "debian 13") -> None:
    cluster.system[node]["kernel"] = {"system": system, "running": kernel, "installed": [*installed]}


def served(*exports: dict[str, Any]) -> Cluster:
    """The controller serves /home to all others, as the inventory says."""
    variables = {"nfs_server_exports": [*exports]} if exports else {}
    return Cluster(groups={**GROUPS, "slurm-nfs": ("ctl1",)}, variables=variables)


def sees(cluster: Cluster, *hosts: str, mode: int = 0o700, home: str = "/home/deploy-validate") -> None:
    for host in hosts:
        cluster.system[host]["root_sees"] = {"home": home, "mode": mode, "seen": True}


def failures(cluster: Cluster, check: str) -> dict[str, str]:
    return by_outcome(cluster.results(check), Outcome.FAILED)


def _old_kernel(cluster: Cluster) -> None:
    runs(cluster, "node1", OLD, "6.12.9+deb13-amd64", NEW, OLD)


def _ninth_is_older_than_tenth(cluster: Cluster) -> None:
    for node, kernel in zip(NODES, ("6.1.0-9-amd64", "6.1.0-10-amd64"), strict=True):
        runs(cluster, node, kernel, "6.1.0-9-amd64", "6.1.0-10-amd64")


def _without_control_groups(cluster: Cluster) -> None:
    words = ["systemd.unified_cgroup_hierarchy=0", "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"]
    cluster.system["node2"]["control_groups"] |= {"version": 1, "controllers": [], "words": words}


def _memory_disabled(cluster: Cluster) -> None:
    words = ["cgroup_disable=memory"]
    cluster.system["node1"]["control_groups"] |= {"controllers": ["cpu", "pids"], "words": words}


def _slurm_of_former_control_groups(cluster: Cluster) -> None:
    """As on Ubuntu 22.04, whose Slurm is 21.08; the other node has the kernel line that it needs."""
    for node in NODES:
        cluster.system[node]["control_groups"]["known"] = [1]
    words = ["systemd.unified_cgroup_hierarchy=0"]
    cluster.system["node2"]["control_groups"] |= {"version": 1, "controllers": [], "words": words}


def _other_version_than_declared(cluster: Cluster) -> None:
    cluster.variables["slurmctld_cgroup_parameters"] = {"CgroupPlugin": "cgroup/v1"}
    cluster.system["node1"]["control_groups"] |= {"version": 1}


@pytest.mark.parametrize(
    ("check", "change", "messages", "hint"),
    [
        (
            "kernels",
            _old_kernel,
            {"node1": f"the kernel {OLD} runs, and {NEW} is installed"},
            "deploy node reboot inventory.ini node1",
        ),
        (
            "kernels",
            _ninth_is_older_than_tenth,
            {"node1": "the kernel 6.1.0-9-amd64 runs, and 6.1.0-10-amd64 is installed"},
            "node1",
        ),
        (
            "kernels",
            lambda cluster: runs(cluster, "node2", OLD, OLD),
            {"node2": f"the kernel {OLD} runs, on most nodes with debian 13 {NEW}"},
            "deploy update inventory.ini",
        ),
        (
            "control-groups",
            _without_control_groups,
            {
                "node2": "control groups are of version 1 instead of 2, by its kernel line: "
                "systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
            },
            "then: deploy node reboot inventory.ini node2 --reason cgroups",
        ),
        (
            "control-groups",
            _memory_disabled,
            {
                "node1": "control groups have no controller of memory, "
                "by its kernel line: cgroup_disable=memory"
            },
            "update-grub",
        ),
        (
            "control-groups",
            _other_version_than_declared,
            {"node2": "control groups are of version 2 instead of 1"},
            "add systemd.unified_cgroup_hierarchy=0 to the kernel line (/etc/default/grub; update-grub)",
        ),
        (
            "control-groups",
            _slurm_of_former_control_groups,
            {"node1": "control groups are of version 2 instead of 1, the only one that its Slurm knows"},
            "add systemd.unified_cgroup_hierarchy=0 to the kernel line (/etc/default/grub; update-grub)",
        ),
    ],
)
def test_fault(check: str, change: Change, messages: dict[str, str], hint: str) -> None:
    expect_fault(check, change, messages, hint)


@pytest.mark.parametrize(
    ("node1", "node2"),
    [
        ((NEW, NEW, "6.12.57+deb13-cloud-amd64"), (NEW, NEW)),
        ((NEW, NEW), ("6.12.48+deb13-cloud-amd64", "6.12.48+deb13-cloud-amd64")),
        # A container has no kernel installed, and one that was built by hand is no package's.
        ((NEW,), (NEW, OLD)),
    ],
)
def test_other_flavours_are_no_newer_kernels(node1: tuple[str, ...], node2: tuple[str, ...]) -> None:
    cluster = Cluster()
    runs(cluster, "node1", *node1)
    runs(cluster, "node2", *node2)
    assert failures(cluster, "kernels") == {}


def test_other_releases_have_other_kernels_and_only_nodes_are_compared() -> None:
    cluster = Cluster()
    runs(cluster, "node2", OLD, OLD, system="debian 12")
    runs(cluster, "ctl1", OLD, OLD, NEW)
    assert by_outcome(cluster.results("kernels"), Outcome.PASSED) == {"node1": NEW, "node2": OLD}


def test_nodes_that_wait_for_their_reboot_make_no_majority() -> None:
    names = tuple(f"node{number}" for number in range(1, 5))
    cluster = Cluster(groups={**GROUPS, "slurm-node": names}, contract={})
    cluster.system |= {name: {**cluster.system["node1"]} for name in names}
    for name in names[:3]:
        runs(cluster, name, OLD, OLD, NEW)
    assert {*failures(cluster, "kernels")} == {*names[:3]}


@pytest.mark.parametrize(
    "parameters", [{"ConstrainRAMSpace": False}, {"ConstrainRAMSpace": "no"}, {"CgroupPlugin": "disabled"}]
)
def test_sites_that_want_no_limit_of_memory(parameters: dict[str, Any]) -> None:
    cluster = Cluster(variables={"slurmctld_cgroup_parameters": parameters})
    _memory_disabled(cluster)
    assert failures(cluster, "control-groups") == {}


def limited(**states: dict[str, str]) -> Cluster:
    """The controller has limits on /home and /data, and serves them."""
    cluster = served()
    cluster.variables["quotas_filesystems"] = LIMITS
    both = {"user": "enforced", "group": "enforced"}
    quotas = {"/home": states.get("home", both), "/data": states.get("data", {**both, "group": "off"})}
    for answer in cluster.system.values():
        answer |= {"quotas": quotas, "serves_quotas": True}
    return cluster


@pytest.mark.parametrize(
    ("home", "says"),
    [
        (
            {"user": "accounting", "group": "off"},
            "/home: quotas of users are counted and not enforced; /home: quotas of groups are off",
        ),
        (
            {"user": "enforced"},
            "/home: quotas of groups are off",
        ),
        ({"why": "no file system is mounted there"}, "/home: no file system is mounted there"),
    ],
)
def test_quotas_that_are_not_in_force(home: dict[str, str], says: str) -> None:
    cluster = limited(home=home)
    assert failures(cluster, "quotas") == dict.fromkeys(ADDRESSES, says)
    assert "quotaon -ug /home /data   (on ctl1)" in cluster.results("quotas")[0].hint


def test_quotas_in_force() -> None:
    cluster = limited()
    assert failures(cluster, "quotas") == {}
    cluster.system["ctl1"]["serves_quotas"] = False
    assert failures(cluster, "quotas") == {"ctl1": "nobody answers NFS clients that ask for theirs"}
    assert "systemctl start quotarpc" in cluster.results("quotas")[0].hint


def test_a_file_server_whose_root_is_its_own() -> None:
    cluster = served()
    cluster.system["ctl1"]["open_exports"] = {}
    cluster.system["node1"]["root_sees"] = {"home": "/home/x", "mode": 0o700, "seen": False}
    assert by_outcome(cluster.results("file-servers"), Outcome.PASSED) == {
        "ctl1": "3 clients have answers, and root of them is nobody"
    }


def test_root_of_clients_is_root_on_the_server() -> None:
    cluster = served()
    sees(cluster, *CLIENTS)
    cluster.system["ctl1"]["open_exports"] = {"/home": ["10.0.0.11"]}
    (result,) = cluster.results("file-servers")
    assert (result.outcome, result.where) == (Outcome.FAILED, "ctl1")
    assert result.message == (
        "root of login1, node1, node2 is root in /home; /home is exported to 10.0.0.11 with no_root_squash"
    )
    assert "deploy cluster inventory.ini --limit ctl1" in result.hint


def test_what_proves_nothing_about_root() -> None:
    cluster = served()
    sees(cluster, "node1", mode=0o755)
    sees(cluster, "node2", home="/local/deploy-validate")
    assert failures(cluster, "file-servers") == {}


@pytest.mark.parametrize("more", [{"root_squash": False}, {"options": ["no_root_squash"]}])
def test_an_export_that_the_site_wants_so(more: dict[str, Any]) -> None:
    cluster = served({"path": "/srv/home", "mount": "/home", **more})
    sees(cluster, *CLIENTS)
    cluster.system["ctl1"]["open_exports"] = {"/srv/home": ["10.0.0.11"]}
    assert by_outcome(cluster.results("file-servers"), Outcome.PASSED) == {"ctl1": "3 clients have answers"}


def test_a_file_server_that_does_not_answer_is_named() -> None:
    cluster = served()
    for client in CLIENTS:
        cluster.looks[client]["silent"] = ["/home"]
    del cluster.looks["ctl1"], cluster.system["ctl1"]
    (result,) = cluster.results("file-servers")
    assert (result.outcome, result.where) == (Outcome.FAILED, "ctl1")
    assert result.message == "/home does not answer on login1, node1, node2"
    assert "systemctl status nfs-server" in result.hint
    assert result.hint.endswith("(on ctl1)")


def test_a_file_server_of_others() -> None:
    mounts = [{"path": "/data", "server": "10.9.0.1", "export": "/data"}]
    storage = [{"path": "/scratch", "type": "ceph", "servers": ["10.9.0.2", "10.9.0.3"]}]
    cluster = Cluster(variables={"nfs_client_mounts": mounts, "network_mounts_filesystems": storage})
    cluster.looks["node1"]["silent"] = ["/data"]
    sees(cluster, "node1", home="/data/home/x")
    assert by_outcome(cluster.results("file-servers"), Outcome.PASSED) == {
        "10.9.0.2": "4 clients have answers"
    }
    assert failures(cluster, "file-servers") == {"10.9.0.1": "/data does not answer on node1"}
    assert cluster.results("file-servers")[0].hint == "nfsstat -m; dmesg --level=warn   (on node1)"


def test_clients_that_were_not_asked_prove_nothing() -> None:
    cluster = served()
    for client in CLIENTS:
        del cluster.looks[client]
    assert [*by_outcome(cluster.results("file-servers"), Outcome.NOT_MEASURED)] == ["ctl1"]

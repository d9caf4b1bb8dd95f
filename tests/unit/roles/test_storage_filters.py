"""Declared file systems as lines of fstab."""

import pytest

from tests.unit.roles.loading import load_module

nfs = load_module("roles/nfs_client/filter_plugins/nfs_mounts.py").FilterModule().filters()["as_nfs_mounts"]
cluster = (
    load_module("roles/network_mounts/filter_plugins/storage_clusters.py")
    .FilterModule()
    .filters()["as_cluster_mounts"]
)
AT_BOOT = ["nofail", "x-systemd.mount-timeout=30min", "retry=30"]
SAFE = ["nosuid", "nodev", "_netdev"]


def test_nfs_mounts_take_the_path_and_the_options_of_all_where_they_have_none() -> None:
    mounts = [
        {"path": "/home", "server": "10.0.0.1"},
        {"path": "/w", "server": "fd00::1", "export": "/v", "options": []},
    ]
    assert nfs(mounts, ["hard"]) == [
        {"path": "/home", "source": "10.0.0.1:/home", "type": "nfs", "options": [*AT_BOOT, "hard"]},
        {"path": "/w", "source": "[fd00::1]:/v", "type": "nfs", "options": AT_BOOT},
    ]


@pytest.mark.parametrize("option", ["noauto", "bg", "x-systemd.automount"])
def test_nothing_is_waited_for_where_somebody_else_mounts(option: str) -> None:
    (mount,) = nfs([{"path": "/w", "server": "nas", "options": ["hard", option]}], [])
    assert mount["options"] == ["hard", option]


@pytest.mark.parametrize(
    ("entry", "source", "options"),
    [
        (
            {"type": "lustre", "servers": ["10.0.0.1@o2ib", "10.0.0.2@o2ib"], "name": "fs"},
            "10.0.0.1@o2ib:10.0.0.2@o2ib:/fs",
            ["flock", *SAFE],
        ),
        (
            {"type": "beegfs", "servers": ["mgmt"], "options": ["noatime"]},
            "beegfs_nodev",
            ["cfgFile=/etc/beegfs/beegfs-client.conf", "sysMgmtdHost=mgmt", *SAFE, "noatime"],
        ),
        (
            {"type": "ceph", "servers": ["m1", "m2:6789"], "directory": "/work", "user": "hpc", "name": "fs"},
            "m1,m2:6789:/work",
            ["name=hpc", "secretfile=/etc/ceph/hpc.secret", "mds_namespace=fs", *SAFE],
        ),
        (
            {"type": "ceph", "servers": ["m1"]},
            "m1:/",
            ["name=admin", "secretfile=/etc/ceph/admin.secret", *SAFE],
        ),
        (
            {"type": "ceph", "servers": ["fd00::4", "[fd00::5]:6789"]},
            "[fd00::4],[fd00::5]:6789:/",
            ["name=admin", "secretfile=/etc/ceph/admin.secret", *SAFE],
        ),
        ({"type": "glusterfs", "servers": ["g1"], "name": "v"}, "g1:/v", ["_netdev"]),
        (
            {"type": "glusterfs", "servers": ["g1", "g2", "g3"], "name": "v"},
            "g1:/v",
            ["backup-volfile-servers=g2:g3", "_netdev"],
        ),
    ],
)
def test_file_systems_of_storage_clusters(entry: dict[str, object], source: str, options: list[str]) -> None:
    (mount,) = cluster([{"path": "/there", **entry}])
    assert mount == {"path": "/there", "source": source, "type": entry["type"], "options": options}

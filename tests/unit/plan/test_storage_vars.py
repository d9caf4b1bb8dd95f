"""Who exports what to whom, and who mounts it."""

from pathlib import Path
from typing import Any

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import Site, read_site
from tests.unit.site.sites import INVENTORY, write_site

SERVED = INVENTORY.replace("[slurm-login]", "[slurm-nfs]\nctl1\n\n[slurm-login]")
EXPORTS = """\
nfs_server_exports:
  - {path: /home}
  - {path: /srv/work, mount: /work}
  - {path: /srv/backup, mount: ""}
"""


def site_of(directory: Path, inventory: str = SERVED, **files: str) -> Site:
    return read_site(write_site(directory, inventory, {f"group_vars/{n}.yml": t for n, t in files.items()}))


def variables(site: Site, limit: set[str] | None = None) -> dict[str, dict[str, Any]]:
    groups = generated_inventory(site, build_plan(site, limit=limit), {})["all"]["children"]
    found: dict[str, dict[str, Any]] = {}
    for group in groups.values():
        for name, own in group["hosts"].items():
            found.setdefault(name, {}).update(own or {})
    return found


def phases(site: Site, limit: set[str] | None = None) -> dict[str, tuple[str, ...]]:
    return {step.phase.name: step.hosts for step in build_plan(site, limit=limit).steps}


def test_without_a_server_nothing_is_exported_or_mounted(tmp_path: Path) -> None:
    site = site_of(tmp_path, INVENTORY)
    assert {"nfs_server", "nfs_client", "network_mounts"}.isdisjoint(phases(site))
    assert "nfs_client_mounts" not in variables(site)["node1"]


def test_home_is_exported_to_each_host_by_its_address_and_mounted_there(tmp_path: Path) -> None:
    site = site_of(tmp_path)
    assert phases(site)["nfs_server"] == ("ctl1",)
    assert phases(site)["nfs_client"] == ("login1", "node1", "node2")
    hosts = variables(site)
    assert hosts["ctl1"]["nfs_server_clients"] == ["10.0.0.2", "10.0.0.11", "10.0.0.12"]
    assert hosts["node1"]["nfs_client_mounts"] == [{"path": "/home", "server": "10.0.0.1", "export": "/home"}]
    assert "nfs_client_mounts" not in hosts["ctl1"]


def test_homes_are_made_where_they_are_served(tmp_path: Path) -> None:
    hosts = variables(site_of(tmp_path))
    assert hosts["node1"]["users_create_home"] is False
    assert "users_create_home" not in hosts["ctl1"]


def test_an_export_may_be_mounted_elsewhere_or_nowhere(tmp_path: Path) -> None:
    hosts = variables(site_of(tmp_path, **{"slurm-nfs": EXPORTS}))
    assert [(m["path"], m["export"]) for m in hosts["login1"]["nfs_client_mounts"]] == [
        ("/home", "/home"),
        ("/work", "/srv/work"),
    ]
    assert hosts["node1"]["slurmd_required_mounts"][-2:] == ["/home", "/work"]
    assert hosts["node1"]["users_mounts"] == ["/home", "/work"]
    assert "users_mounts" not in hosts["ctl1"]


def test_the_server_learns_of_a_new_client_in_a_limited_run(tmp_path: Path) -> None:
    site = site_of(tmp_path)
    assert phases(site, {"node2"})["nfs_server"] == ("ctl1",)
    assert phases(site, {"node2"})["nfs_client"] == ("node2",)
    limited, whole = variables(site, {"node2"}), variables(site)
    assert limited["ctl1"]["nfs_server_clients"] == whole["ctl1"]["nfs_server_clients"]


def test_only_the_group_of_clients_mounts_where_there_is_one(tmp_path: Path) -> None:
    site = site_of(tmp_path, SERVED + "\n[slurm-nfs-client]\nnode1\n")
    assert phases(site)["nfs_client"] == ("node1",)
    assert variables(site)["ctl1"]["nfs_server_clients"] == ["10.0.0.11"]


def test_a_server_outside_of_the_cluster_is_declared(tmp_path: Path) -> None:
    text = "nfs_client_mounts: [{path: /home, server: nas}]\n"
    site = site_of(tmp_path, INVENTORY, all=text)
    assert phases(site)["nfs_client"] == ("ctl1", "login1", "node1", "node2")
    assert "nfs_client_mounts" not in variables(site)["node1"]
    assert variables(site)["ctl1"]["users_create_home"] is False


def test_clients_of_storage_clusters_follow_from_their_types(tmp_path: Path) -> None:
    text = """\
network_mounts_filesystems:
  - {path: /a, type: glusterfs, servers: [s1], name: v}
  - {path: /b, type: ceph, servers: [m1]}
"""
    site = site_of(tmp_path, INVENTORY, **{"slurm-login": text})
    assert phases(site)["network_mounts"] == ("login1",)
    login = variables(site)["login1"]
    assert login["network_mounts_packages"] == ["ceph-common", "glusterfs-client"]
    assert {"ceph-common", "glusterfs-client"} <= set(login["bootstrap_packages"])

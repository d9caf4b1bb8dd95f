"""What the storage roles and Slurm must know of the site's file systems."""

from collections.abc import Mapping
from typing import Any

from deploy.site.inventory import NFS, Host, Site
from deploy.site.schema import default_of
from deploy.site.storage import (
    has_shared_homes,
    is_nfs_client,
    mount_paths,
    network_filesystems,
    nfs_clients,
    nfs_mounts,
)

Variables = dict[str, Any]

TASK_PROLOG = "/usr/local/lib/slurm-task-prolog"
"""The program of the role user_environment that sets variables in the tasks of jobs."""


_CLIENT_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "lustre": ("lustre-client-utils",),
    "beegfs": ("beegfs-client", "beegfs-utils"),
    "ceph": ("ceph-common",),
    "glusterfs": ("glusterfs-client",),
}
"""What mounts a type of file system, by the names that its makers give the packages."""


def host_storage(site: Site, host: Host) -> Variables:
    """What a host serves and mounts."""
    wired: Variables = {}
    if host in site.group(NFS):
        clients = [client for client in nfs_clients(site) if client is not host]
        wired["nfs_server_clients"] = [client.cluster_address for client in clients]
    if is_nfs_client(site, host):
        wired["nfs_client_mounts"] = nfs_mounts(site, host)
    if filesystems := network_filesystems(host):
        types = sorted({str(entry.get("type")) for entry in filesystems} & _CLIENT_PACKAGES.keys())
        wired["network_mounts_packages"] = [name for kind in types for name in _CLIENT_PACKAGES[kind]]
    if host.variables.get("quotas_filesystems"):
        accounts = host.variables.get("users_accounts") or []
        wired["quotas_accounts"] = [user["name"] for user in accounts if user.get("state") != "absent"]
        wired["quotas_served"] = host in site.group(NFS)
    if paths := mount_paths(site, host):
        wired["users_mounts"] = paths
    if has_shared_homes(site, host):
        wired["users_create_home"] = False
    return wired


def node_scratch(node: Host) -> Variables:
    """Where a compute node keeps the private directories of jobs, as the role slurmctld wants it."""
    private = node.value("scratch_private_directories")
    own: Mapping[str, Any] = (
        {"private": private} if private != default_of("scratch_private_directories") else {}
    )
    return {"directory": node.value("scratch_directory"), **own}


def required_mounts(site: Site, node: Host) -> list[str]:
    """The directories without whose file systems a compute node must take no jobs."""
    own = [node.value("scratch_directory"), *node.value("scratch_private_directories")]
    return [*own, *mount_paths(site, node)]

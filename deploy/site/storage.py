"""Shared file systems of a site: which host serves what, who mounts it where, and what contradicts itself."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from deploy.errors import Finding
from deploy.site.inventory import NFS, NFS_CLIENT, Host, Site
from deploy.site.origin import host_origin
from deploy.site.schema import default_of

Entry = Mapping[str, Any]

_SHOWN = 3


def exports(server: Host) -> list[Entry]:
    """The directories that a host of [slurm-nfs] exports."""
    return _entries(server, "nfs_server_exports")


def is_nfs_client(site: Site, host: Host) -> bool:
    """Whether a host mounts by NFS: one of [slurm-nfs-client], else all but servers; and who declares it."""
    if host.variables.get("nfs_client_mounts"):
        return True
    servers = site.groups.get(NFS, ())
    is_chosen = NFS_CLIENT in host.groups or not site.groups.get(NFS_CLIENT)
    return bool(servers) and is_chosen and host.name not in servers


def nfs_clients(site: Site) -> tuple[Host, ...]:
    """The hosts that mount by NFS."""
    return tuple(host for host in site.cluster if is_nfs_client(site, host))


def nfs_mounts(site: Site, client: Host) -> list[dict[str, Any]]:
    """What a client mounts: what it declares, else what the servers export, all of it."""
    if "nfs_client_mounts" in client.variables:
        return [dict(entry) for entry in _entries(client, "nfs_client_mounts")]
    return [
        {"path": mount_point(entry), "server": server.cluster_address, "export": str(entry.get("path"))}
        for server in site.group(NFS)
        if server.name != client.name
        for entry in exports(server)
        if mount_point(entry)
    ]


def mount_point(entry: Entry) -> str:
    """Where clients mount an export; empty when they do not."""
    return str(entry.get("mount", entry.get("path", "")) or "")


def network_filesystems(host: Host) -> list[Entry]:
    """The file systems of a storage cluster that a host mounts."""
    return _entries(host, "network_mounts_filesystems")


def mount_paths(site: Site, host: Host) -> list[str]:
    """Every place at which a host mounts a file system from elsewhere."""
    nfs = nfs_mounts(site, host) if is_nfs_client(site, host) else []
    return [str(entry["path"]) for entry in (*nfs, *network_filesystems(host)) if entry.get("path")]


def hosts_with_quotas(site: Site) -> tuple[Host, ...]:
    """The hosts that set quotas, and the NFS clients of those, where people look at theirs."""
    own = {host.name for host in site.cluster if host.variables.get("quotas_filesystems")}
    served = own & {server.name for server in site.group(NFS)}
    asking = {client.name for client in nfs_clients(site)} if served else set()
    return tuple(host for host in site.cluster if host.name in own | asking)


def has_shared_homes(site: Site, host: Host) -> bool:
    """Whether a host has /home from elsewhere, where other hosts make the homes."""
    return any(PurePosixPath("/home").is_relative_to(path) for path in mount_paths(site, host) if path != "/")


def check_storage(site: Site) -> Iterator[Finding]:
    """Mounts that take the same place, and exports that nobody serves."""
    yield from _served_by_nobody(site)
    told: set[tuple[str, str]] = set()
    for host in site.cluster:
        paths = [str(PurePosixPath(path)) for path in mount_paths(site, host)]
        for path in sorted({path for path in paths if paths.count(path) > 1}):
            where = _place(site, host)
            if (where, path) not in told:
                told.add((where, path))
                yield Finding(
                    where,
                    "mounted-twice",
                    f"{path} would be mounted twice on {host.name}, and only the last one could be seen",
                    "give one of them another path (for an export: mount)",
                )


def _served_by_nobody(site: Site) -> Iterator[Finding]:
    name = "nfs_server_exports"
    default = default_of(name)
    setters = [host for host in site.cluster if host.value(name) != default]
    if setters and not any(name in server.variables for server in site.group(NFS)):
        yield Finding(
            setters[0].where(name),
            "nfs-without-server",
            f"{name} is set for {_some(setters)}, but no host below [{NFS}] has it: "
            "nothing would be exported",
            f"name the host with the disks below [{NFS}], or set it in group_vars/{NFS}.yml",
        )


def _place(site: Site, host: Host) -> str:
    for name in ("nfs_client_mounts", "network_mounts_filesystems"):
        if name in host.variables:
            return host.where(name)
    for server in site.group(NFS):
        if "nfs_server_exports" in server.variables:
            return server.where("nfs_server_exports")
    return host_origin(site.inventory, host.name)


def _some(hosts: list[Host]) -> str:
    return f"{', '.join(host.name for host in hosts[:_SHOWN])}{' …' if len(hosts) > _SHOWN else ''}"


def _entries(host: Host, name: str) -> list[Entry]:
    """A list of entries as declared, else as the role has it; anything else is the schema's business."""
    value = host.value(name)
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []

"""Filter: file systems of storage clusters as lines of fstab."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Entry = Mapping[str, Any]

_SAFE = ("nosuid", "nodev", "_netdev")


def _lustre(entry: Entry) -> tuple[str, list[str]]:
    """MGS_NID:MGS_NID:/NAME, as in mount.lustre(8)."""
    return f"{':'.join(entry['servers'])}:/{entry['name']}", ["flock", *_SAFE]


def _beegfs(entry: Entry) -> tuple[str, list[str]]:
    """The management host is an option; there is nothing to mount by name."""
    settings = ["cfgFile=/etc/beegfs/beegfs-client.conf", f"sysMgmtdHost={entry['servers'][0]}"]
    return "beegfs_nodev", [*settings, *_SAFE]


def _ceph(entry: Entry) -> tuple[str, list[str]]:
    """MONITOR,MONITOR:/DIRECTORY, as in mount.ceph(8)."""
    user = entry.get("user") or "admin"
    options = [f"name={user}", f"secretfile=/etc/ceph/{user}.secret"]
    if entry.get("name"):
        options.append(f"mds_namespace={entry['name']}")
    monitors = ",".join(map(_bracketed, entry["servers"]))
    return f"{monitors}:{entry.get('directory') or '/'}", [*options, *_SAFE]


def _bracketed(server: str) -> str:
    """An IPv6 address as it stands before a port; others have at most the colon of their port."""
    return f"[{server}]" if server.count(":") > 1 and not server.startswith("[") else server


def _glusterfs(entry: Entry) -> tuple[str, list[str]]:
    """SERVER:/VOLUME; the other servers are asked when the first is away."""
    others = ":".join(entry["servers"][1:])
    options = [f"backup-volfile-servers={others}"] if others else []
    return f"{entry['servers'][0]}:/{entry['name']}", [*options, "_netdev"]


_KINDS: Mapping[str, Callable[[Entry], tuple[str, list[str]]]] = {
    "lustre": _lustre,
    "beegfs": _beegfs,
    "ceph": _ceph,
    "glusterfs": _glusterfs,
}


def as_cluster_mounts(filesystems: Iterable[Entry]) -> list[dict[str, Any]]:
    """The entries of network_mounts_filesystems as mounts_current wants them."""
    mounts = []
    for entry in filesystems:
        source, options = _KINDS[entry["type"]](entry)
        own = entry.get("options") or []
        mounts.append(
            {"path": entry["path"], "source": source, "type": entry["type"], "options": [*options, *own]}
        )
    return mounts


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Mapping[str, Callable[..., Any]]:
        """The filters by name."""
        return {"as_cluster_mounts": as_cluster_mounts}

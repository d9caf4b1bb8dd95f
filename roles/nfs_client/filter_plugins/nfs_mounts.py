"""Filter: declared NFS mounts as lines of fstab."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


def as_nfs_mounts(mounts: Iterable[Mapping[str, Any]], options: Sequence[str]) -> list[dict[str, Any]]:
    """The entries of nfs_client_mounts for mounts_current; ``options`` are for those without their own."""
    return [
        {
            "path": mount["path"],
            "source": f"{_bracketed(mount['server'])}:{mount.get('export') or mount['path']}",
            "type": "nfs",
            "options": list(options if mount.get("options") is None else mount["options"]),
        }
        for mount in mounts
    ]


def _bracketed(server: str) -> str:
    return f"[{server}]" if ":" in server and not server.startswith("[") else server


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Mapping[str, Callable[..., Any]]:
        """The filters by name."""
        return {"as_nfs_mounts": as_nfs_mounts}

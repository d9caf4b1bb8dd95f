"""Filter: declared NFS mounts as lines of fstab."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_OF_BOOT = ("nofail", "x-systemd.mount-timeout=30min", "retry=30")
"""A server that is away at boot is waited for, half an hour.

Without them mount gives up after two minutes, systemd after a minute and a half (nfs(5), systemd.mount(5)),
and nobody tries again. As long as /home is waited for, systemd-user-sessions lets in nobody but root: so not
for ever.
"""
_SOMEBODY_ELSE_MOUNTS = {"noauto", "x-systemd.automount", "bg"}


def as_nfs_mounts(mounts: Iterable[Mapping[str, Any]], options: Sequence[str]) -> list[dict[str, Any]]:
    """The entries of nfs_client_mounts for mounts_current; ``options`` are for those without their own."""
    return [
        {
            "path": mount["path"],
            "source": f"{_bracketed(mount['server'])}:{mount.get('export') or mount['path']}",
            "type": "nfs",
            "options": _at_boot(options if mount.get("options") is None else mount["options"]),
        }
        for mount in mounts
    ]


def _at_boot(options: Sequence[str]) -> list[str]:
    """The options with those of the boot before them, so that a site's own say otherwise."""
    others = _SOMEBODY_ELSE_MOUNTS.intersection(options)
    return [*options] if others else [*_OF_BOOT, *options]


def _bracketed(server: str) -> str:
    return f"[{server}]" if ":" in server and not server.startswith("[") else server


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Mapping[str, Callable[..., Any]]:
        """The filters by name."""
        return {"as_nfs_mounts": as_nfs_mounts}

"""Where files with secrets may lie while a command runs: in memory, where there is a file system in it.

Ansible takes passwords as files and decrypts vaulted ones into files. What was on a disk can be read from it,
and from a copy of it, long after it was removed.
"""

import os
import re
import stat
import tempfile
from pathlib import Path

_SHARED = Path("/dev/shm")  # noqa: S108 - directories below it are their owner's alone
_TYPES = frozenset({"tmpfs", "ramfs"})
_ROOM = 32 * 1024 * 1024
"""What Ansible leaves beside them in a large run."""
_MOUNTS = Path("/proc/self/mountinfo")


def place_for_secrets() -> Path:
    """The directory for private directories: one in memory with room, else where temporary files lie."""
    own = os.environ.get("XDG_RUNTIME_DIR")
    places = [*([Path(own)] if own else []), _SHARED]
    return next((path for path in places if _is_fit(path)), Path(tempfile.gettempdir()))


def is_in_memory(path: Path) -> bool:
    """Whether what is written there stays in memory (or in swap)."""
    path, found = path.resolve(), ("", "")
    for line in _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines():
        mount, _, source = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), mount.split()[4])
        # Of those on one point the last is what is seen.
        if len(point) >= len(found[0]) and path.is_relative_to(point):
            found = (point, source.split()[0])
    return found[1] in _TYPES


def _is_fit(path: Path) -> bool:
    try:
        status, space = path.stat(), os.statvfs(path)
        is_safe = status.st_uid == os.geteuid() or status.st_mode & stat.S_ISVTX
        has_room = space.f_bavail * space.f_frsize >= _ROOM
        return bool(is_safe) and has_room and os.access(path, os.W_OK | os.X_OK) and is_in_memory(path)
    except OSError:
        return False

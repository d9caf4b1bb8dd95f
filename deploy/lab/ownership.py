"""Under sudo, new files belong to the person who typed it: the next verb needs no root."""

import os
from collections.abc import Mapping
from pathlib import Path


def hand_over(path: Path, environment: Mapping[str, str] = os.environ) -> None:
    """Give a file or directory that was just made to the caller of sudo, if there is one."""
    user, group = environment.get("SUDO_UID"), environment.get("SUDO_GID")
    if user and group:
        os.chown(path, int(user), int(group))


def make_directory(path: Path, mode: int = 0o755) -> None:
    """Make a directory and its parents, each handed over; one that exists is left as it is."""
    if not path.exists():
        make_directory(path.parent)
        path.mkdir(mode=mode)
        hand_over(path)

"""A private directory for what a run makes for itself; what a killed run left is swept by the next one."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.in_memory import place_for_secrets

_PREFIX = "deploy-place-"
_NEW_SECONDS = 60
"""A directory this young may belong to a run that has not locked it yet."""


@contextmanager
def private_place() -> Iterator[Path]:
    """A directory that vanishes with its run, or with the next one where its run was killed."""
    parent = place_for_secrets()
    _sweep(parent)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent) as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(descriptor)


def _sweep(parent: Path) -> None:
    """Removes the directories of this user that nobody holds: the kernel freed them when their runs ended."""
    for path in parent.glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            found = os.fstat(descriptor)
            if found.st_uid == os.getuid() and found.st_mtime < time.time() - _NEW_SECONDS:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)

"""A private directory for what a run makes for itself; what a killed run left is swept by the next one."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from deploy.in_memory import place_for_secrets

_OF_RUNS = ("place", "run")
"""The kinds that every run of a site may make."""
_ON_DISK = "/var/tmp"  # noqa: S108 - made private
NEW_SECONDS = 60
"""A directory this young may belong to a run that has not locked it yet."""


@contextmanager
def private_place(kind: str = "place", parent: Path | None = None) -> Iterator[Path]:
    """A directory that vanishes with its run, or with a later one where its run was killed.

    It is in memory where nothing else is said.
    """
    parent = parent or place_for_secrets()
    # A run that finds nothing to do makes no more than the one, and the killed one had all of them.
    for each in {kind, *_OF_RUNS}:
        _sweep(parent, f"deploy-{each}-")
    with tempfile.TemporaryDirectory(
        prefix=f"deploy-{kind}-", dir=parent, ignore_cleanup_errors=True
    ) as name:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(descriptor)


def place_on_disk(kind: str) -> AbstractContextManager[Path]:
    """The same on a disk, for what is large and no secret: /tmp may be in memory, as on Debian 13."""
    return private_place(kind, Path(os.environ.get("TMPDIR") or _ON_DISK))


def _sweep(parent: Path, prefix: str) -> None:
    """Removes the directories of this user that nobody holds: the kernel freed them when their runs ended."""
    for path in parent.glob(f"{prefix}*"):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            found = os.fstat(descriptor)
            if found.st_uid == os.getuid() and found.st_mtime < time.time() - NEW_SECONDS:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)

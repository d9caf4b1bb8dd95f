"""Files that a power cut leaves as they were or as they are meant: on disk before they take their place.

Without that some file systems (XFS, and ext4 without auto_da_alloc) have the new name with nothing in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error names the file that was to be written, as of a full disk it does not by itself."""
    try:
        yield
    except OSError as problem:
        problem.filename = problem.filename or str(path)
        raise


def replace_file(path: Path, content: bytes, mode: int, owner: tuple[int, int] | None = None) -> None:
    """Gives a file its content whole; nobody else can read what is not in place yet."""
    beside = new_name(path)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with naming(path), os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            if owner:
                os.fchown(descriptor, *owner)
            os.fsync(descriptor)
        beside.replace(path)
        keep_names(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def new_name(path: Path) -> Path:
    """A name beside a file for what takes its place; what killed processes of this host left is removed."""
    ours = f".{path.name}.{os.uname().nodename}."
    for entry in path.parent.iterdir():
        number = entry.name.removeprefix(ours)
        if entry.name.startswith(ours) and number.isdigit() and not _lives(int(number)):
            entry.unlink(missing_ok=True)
    return path.with_name(f"{ours}{os.getpid()}")


def _lives(process: int) -> bool:
    """Whether another process does: this one is about to write anew."""
    return process != os.getpid() and Path("/proc", str(process)).exists()


def keep_names(directory: Path) -> None:
    """Has the names in a directory on disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

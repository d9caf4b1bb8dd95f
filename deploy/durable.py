"""Files that a power cut leaves as they were or as they are meant, and files for their owner alone."""

import os
import stat
from contextlib import suppress
from pathlib import Path

_PRIVATE = 0o600


def replace_file(path: Path, text: str, mode: int = _PRIVATE) -> None:
    """Gives a file its content whole: on disk first, beside the old one, whose place it then takes.

    A link stays one: the file is where it leads. What was read with ``surrogateescape`` has its bytes again.
    """
    path = path.resolve()
    beside = _new_name(path)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        beside.replace(path)
        keep_names(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def _new_name(path: Path) -> Path:
    """A name beside a file for what takes its place; what killed runs of this machine left so is removed."""
    ours = f".{path.name}.{os.uname().nodename}."
    for entry in path.parent.iterdir():
        number = entry.name.removeprefix(ours)
        if entry.name.startswith(ours) and number.isdigit() and not _lives(int(number)):
            entry.unlink(missing_ok=True)
    return path.with_name(f"{ours}{os.getpid()}")


def _lives(process: int) -> bool:
    """Whether it does; it may be somebody else's."""
    try:
        with suppress(PermissionError):
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def take_place(new: Path, path: Path) -> None:
    """Gives a file that some program wrote its final name, in the same file system: on disk first."""
    descriptor = os.open(new, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    new.replace(path)
    keep_names(path.parent)


def keep_names(directory: Path) -> None:
    """Has the names in a directory on disk: without it a file is, and the name that it was given is not."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_private(path: Path, text: str) -> None:
    """Writes what somebody asked for where he said, which may be a terminal; a file is its owner's alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, _PRIVATE)
        file.write(text)

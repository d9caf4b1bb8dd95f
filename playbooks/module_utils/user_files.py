"""What root does in places that users own: as their owner, in a process of its own, and not for ever.

A home may be on a file server that is gone, or where root may do nothing; its owner may have put a pipe, a
device, an endless file or a link where a small file is expected. None of it may hold up or mislead
anybody else.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import stat
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.mount_table import NETWORK_KINDS, Mount, containing, mounted

SECONDS = 10.0
"""For how long one waits for each."""

_LARGEST = 1 << 20
_CHUNK = 1 << 16
_MOST_DESCRIPTORS = 4096
_MOST_STEPS = 1000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class UnfitError(OSError):
    """What is there is no small regular file."""


@dataclass(frozen=True)
class Work:
    """Something to do at a path as somebody; ``do`` returns what JSON can say."""

    name: str
    path: str
    uid: int
    gid: int
    do: Callable[[], Any]


@dataclass(frozen=True)
class Outcome:
    """What came of it; ``problem`` when nothing did."""

    value: Any = None
    problem: str = ""


def as_owners(works: Sequence[Work], seconds: float = SECONDS) -> dict[str, Outcome]:
    """What came of each, by name; where a file system does not answer, nothing else there is waited for."""
    outcomes: dict[str, Outcome] = {}
    mounts = mounted()
    left = list(works)
    while left:
        outcomes |= _until_one_hangs(left, seconds)
        left = [work for work in left if work.name not in outcomes]
        if left:
            hanging = [left[0]]
            place = _place(left[0].path, mounts)
            # A user can make a directory of one's own hang; that is nobody else's trouble.
            if not _until_one_hangs([Work("", place, 0, 0, partial(_answers, place))], seconds):
                hanging = [work for work in left if _place(work.path, mounts) == place]
            outcomes |= {
                work.name: Outcome(problem=f"{work.path} does not answer within {seconds:g} s")
                for work in hanging
            }
            left = [work for work in left if work.name not in outcomes]
    return outcomes


def _answers(place: str) -> bool:
    os.statvfs(place)
    return True


def read_small(name: str, directory: int | None = None) -> str:
    """The text of a file that a user may have put there. Raises UnfitError, or OSError."""
    try:
        descriptor = os.open(name, _READ, dir_fd=directory)
    except OSError as problem:
        if problem.errno in {errno.ELOOP, errno.ENXIO, errno.ENODEV}:
            raise UnfitError(problem.errno, "not a regular file") from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnfitError(errno.EINVAL, "not a regular file")
        content = file.read(_LARGEST + 1) if status.st_size <= _LARGEST else b""
    if max(status.st_size, len(content)) > _LARGEST:
        raise UnfitError(errno.EFBIG, f"larger than {_LARGEST >> 20} MiB")
    return content.decode("utf-8", "surrogateescape")


def replace_small(name: str, text: str, directory: int, mode: int = 0o600) -> None:
    """Puts a new file in the place of whatever is there."""
    beside = f".{name}.{os.getpid()}.{time.monotonic_ns()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(beside, flags, mode, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.rename(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)
    except OSError:
        with suppress(OSError):
            os.unlink(beside, dir_fd=directory)
        raise


@contextmanager
def opened(name: str, directory: int | None = None) -> Iterator[int]:
    """A directory, open so that what is done below it is done there."""
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _place(path: str, mounts: Sequence[Mount]) -> str:
    """The mount point that a path leads to; a file server, which may not answer, is not asked for links."""
    place, parts = Path("/"), [*Path(path).parts[1:]]
    for _ in range(_MOST_STEPS):
        mount = containing(str(place), mounts)
        if not parts or (mount and (mount.kind in NETWORK_KINDS or mount.kind.startswith("fuse"))):
            return mount.path if mount else "/"
        here = Path(os.path.normpath(place / parts.pop(0)))
        try:
            target = here.readlink()
        except OSError:
            place = here
            continue
        place, parts = Path("/") if target.is_absolute() else place, [*target.parts, *parts]
        parts = parts[1:] if parts[:1] == ["/"] else parts
    return "/"


def _until_one_hangs(works: Sequence[Work], seconds: float) -> dict[str, Outcome]:
    """The outcomes of the first ones, of all unless one does not come to its end."""
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        # The child touches none of what threads of its parent may hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _serve(works, writes)
    os.close(writes)
    text = b""
    try:
        while text.count(b"\n") < len(works) and select.select([reads], [], [], seconds)[0]:
            if not (said := os.read(reads, _CHUNK)):
                break
            text += said
    finally:
        os.close(reads)
        os.kill(child, signal.SIGKILL)
        # One that hangs in a file system may end only when that answers; nobody waits for it.
        os.waitpid(child, 0 if text.count(b"\n") == len(works) else os.WNOHANG)
    whole = text[: text.rfind(b"\n") + 1].splitlines()
    return {name: Outcome(*said) for name, *said in map(json.loads, whole)}


def _serve(works: Sequence[Work], writes: int) -> None:
    """In the child: does the works in order and tells a line of each. Does not return."""
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        # The connection that this process serves must not be held open by a child that hangs.
        for number in range(3, _MOST_DESCRIPTORS):
            if number != writes:
                with suppress(OSError):
                    os.close(number)
        for work in works:
            value, problem = None, ""
            try:
                with _acting_as(work.uid, work.gid):
                    value = work.do()
            except OSError as reason:
                problem = f"{Path(work.path, str(reason.filename or ''))}: {reason.strerror or reason}"
            except Exception as reason:  # noqa: BLE001 - of one work, which is no reason to lose the others
                problem = f"{work.path}: {type(reason).__name__}: {reason}"
            os.write(writes, json.dumps([work.name, value, problem]).encode() + b"\n")
    finally:
        os._exit(0)


@contextmanager
def _acting_as(uid: int, gid: int) -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.setgroups([])
    os.setegid(gid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)

"""One run per site at a time: a lock that the kernel frees when its holder ends, however it ends."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.errors import DeployError, error


@contextmanager
def site_lock(directory: Path, name: str = "lock") -> Iterator[None]:
    """Holds the lock of that name of the site in ``directory``.

    Raises DeployError ``site-locked``, ``site-not-writable``.
    """
    path = directory / name
    # Python makes the descriptor close on exec, so no child outlives us with the lock.
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as problem:
        raise _not_writable(path, problem) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise error(
                "site-locked",
                f"another run is at work on this site{_holder(path)}",
                where=str(path),
                hint="wait until it has ended, then type the same again",
            ) from None
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps({"pid": os.getpid(), "since": time.time()}).encode())
        except OSError as problem:
            raise _not_writable(path, problem) from None
        yield
    finally:
        os.close(descriptor)


def _not_writable(path: Path, problem: OSError) -> DeployError:
    return error(
        "site-not-writable",
        f"the lock of a run is kept beside the inventory: {problem.strerror}",
        where=str(path),
        hint="make room there, or run as a user who may write there",
    )


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        since = time.strftime("%H:%M:%S", time.localtime(holder["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return f" (process {holder['pid']}, since {since})"

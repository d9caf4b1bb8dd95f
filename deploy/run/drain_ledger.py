"""Where the ledger of drains is: on the disk of the one controller, or on storage that several share.

One controller has it in /var/lib/deploy. With several a pointer lies there instead: to a directory in
slurmctld's state. The state is the user slurm's, who can rename what lies in it and put something else in its
place. So that directory is taken only when it is root's alone and has the id that the pointer says, and it is
held open: what is read and written is in it, wherever its name leads by then.

Programs that deploy sends to controllers have it, and Ansible's modules as ansible.module_utils.drain_ledger:
the standard library of Python 3.9 alone, and nothing of deploy's.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FILES = {"drains.json": "[]", "reservations.json": "{}", "remedies.json": "[]"}
"""What a ledger has, and what is in it at first."""
POINTER = "ledger.json"
ID = "id"
"""In a shared directory while the ledger is there: which one it is."""
CONFIGURATION = Path("/etc/slurm/slurm.conf")
_LOCK = ".drains.lock"
_SECONDS = 40
"""For how long one waits for others; whoever asks a controller waits for an answer longer than that."""
_PAUSE = 0.05
_CONTROLLER = re.compile(r"^[ \t]*SlurmctldHost[ \t]*=[ \t]*([^\s(,]+)", re.IGNORECASE | re.MULTILINE)


class AwayError(Exception):
    """The ledger is not where it should be; the text says why, and what to do."""


def place(local: Path) -> Path:
    """The directory of the ledger; ``local`` is deploy's own on this host. Raises AwayError."""
    said = pointer(local)
    if said is not None:
        found = opened(Path(said["directory"]))
        if id_of(found) != said["id"]:
            message = (
                f"{said['directory']} has another ledger of drains than this host knows, or is empty: it was "
                "moved, or its move was cut off, which deploy cluster ends"
            )
            raise AwayError(message)
        return found
    if first := _first_of_others():
        message = f"it stands by, and has no ledger of drains: that is on {first}"
        raise AwayError(message)
    return local


def pointer(local: Path) -> dict[str, Any] | None:
    """Where the ledger is instead: ``directory`` and ``id``, and ``moves`` while it is being moved."""
    try:
        return dict(json.loads((local / POINTER).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def opened(directory: Path) -> Path:
    """A directory that is root's alone, by a handle that lasts as long as the program. Raises AwayError."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as problem:
        message = (
            f"the ledger of drains should be in {directory} ({problem.strerror}): mount it; if it has "
            "another name now, give it this one"
        )
        raise AwayError(message) from None
    about = os.fstat(handle)
    # Whoever runs this is root, and on storage that takes root for nobody owns nothing.
    if about.st_uid != os.geteuid() or about.st_mode & 0o077:
        os.close(handle)
        message = f"{directory} is not root's alone, so it is no ledger of drains: find out who put it there"
        raise AwayError(message)
    return Path(f"/proc/self/fd/{handle}")


def id_of(directory: Path) -> str:
    """Which ledger is in a shared directory; empty where none is, or none any more."""
    try:
        return (directory / ID).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


@contextlib.contextmanager
def locked(local: Path) -> Iterator[Path]:
    """The directory of the ledger, for one at a time, on whichever controller. Raises AwayError."""
    local.mkdir(mode=0o755, parents=True, exist_ok=True)
    deadline = time.monotonic() + _SECONDS
    while True:
        found = place(local)
        with held(found, deadline):
            # It may have moved while this one waited.
            if os.path.samefile(found, place(local)):  # noqa: PTH121 - it follows both names
                yield found
                return


@contextlib.contextmanager
def held(directory: Path, deadline: float | None = None) -> Iterator[None]:
    """A directory's lock, also against other hosts where the file system has such locks. Raises AwayError."""
    deadline = deadline or time.monotonic() + _SECONDS
    with open(directory / _LOCK, "w") as lock:  # noqa: PTH123 - 3.9 flocks what open gives
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    message = f"another command has held the ledger of drains for {_SECONDS} s"
                    raise AwayError(message) from None
                time.sleep(_PAUSE)
        yield


def _first_of_others() -> str:
    """The first of several controllers, where this one is another of them; else nothing."""
    try:
        names = _CONTROLLER.findall(CONFIGURATION.read_text(encoding="utf-8"))
    except OSError:
        return ""
    return str(names[0]) if socket.gethostname().partition(".")[0] in names[1:] else ""

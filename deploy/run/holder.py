"""What deploy runs on a controller while it changes the cluster, or measures it: it holds a lock there.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone. The kernel frees the
lock when this program ends. It ends with its connection; where nobody tells it of that, as after a power cut
at the other end, when no line has come for a while.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_SECONDS = 30


def hold(path: str, holder: dict[str, Any], patience: float, power: dict[str, str]) -> None:
    """Says who holds the lock already, or null, and then holds it as long as lines come.

    With null it says how many seconds ago the one before let go, which is null where there was none: the time
    of the file is when somebody began or ended. By then ``leave_on`` has come back.
    """
    descriptor = _opened(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _say(_read(path))
        return
    before = os.fstat(descriptor)
    idle = max(0.0, time.time() - before.st_mtime) if before.st_size else None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, json.dumps(holder).encode())
    leave_on(patience, power, lambda: _say(None, idle))
    os.utime(descriptor)


def leave_on(patience: float, power: dict[str, str], say: Callable[[], None] | None = None) -> None:
    """Has Slurm switch no node off as long as lines come: by a lock that many share, and a program.

    The ``program`` is there where Slurm switches nodes off; it knows the ``lock``.
    """
    fcntl.flock(_opened(power["lock"]), fcntl.LOCK_SH)
    nothing = subprocess.DEVNULL
    with contextlib.suppress(FileNotFoundError, subprocess.TimeoutExpired):
        subprocess.run(
            [power["program"]], stdin=nothing, stdout=nothing, stderr=nothing, timeout=_SECONDS, check=False
        )
    (say or _say)()
    while select.select([0], [], [], patience)[0] and os.read(0, 1024):
        pass


def _opened(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _say(held_by: dict[str, Any] | None = None, idle: float | None = None) -> None:
    sys.stdout.write("\ndeploy:" + json.dumps({"held_by": held_by, "idle": idle}) + "\n")
    sys.stdout.flush()

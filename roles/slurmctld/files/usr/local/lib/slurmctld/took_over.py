#!/usr/bin/python3
"""Has a slurmctld that took the lead over from another one account for jobs (SlurmctldPrimaryOnProg).

From Slurm 26.05 on slurmctld keeps what it has to say to slurmdbd until it was told that it has read its
state; one that stood by and takes over never is. What it keeps is sent when it stops in order and another one
starts, and lost beyond MaxDBDMsgs and with the machine. One that reads its configuration anew begins as the
one that leads, and sends. So that is what it is asked for here, once it answers.

slurmctld waits for this program, which therefore leaves a process behind, and runs it whenever it begins to
lead: without an open file, as the user slurm. Written with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import syslog
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from may_start import CONFIGURATION, controllers
from slurm_commands import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

IN_VAIN = Path("/run/slurmctld/took_over_in_vain")
"""The slurmctld that did not take its configuration: asked once more it would again stand by in between."""
_READ_ANEW = "SLURMCTLD_RECONF"
"""What slurmctld tells the new process by which it reads its configuration anew."""
_STANDARD_ERROR = 2
_SINCE = (26, 5)
_PATIENCE_SECONDS = 600.0
_PAUSE_SECONDS = 1.0


def main_process() -> int:
    """The process that systemd takes for slurmctld; 0 where it does not say."""
    said = run("systemctl", "show", "--property=MainPID", "--value", "slurmctld.service")[1]
    return int(said) if said.isdigit() else 0


def keeps_it_to_itself() -> bool:
    """Whether this release of Slurm has to be asked."""
    found = re.search(r"(\d+)\.(\d+)", run("slurmctld", "-V")[1])
    return bool(found) and (int(found[1]), int(found[2])) >= _SINCE


def took_over(slurmctld: int, name: str) -> bool:
    """Whether this process of slurmctld stood by until now, and was not asked before in vain."""
    known = controllers(CONFIGURATION.read_text(encoding="utf-8", errors="replace"))
    # The first one stands by never.
    if not known or known[0][0] == name:
        return False
    # What reads the configuration anew is a new process; systemd's it is only when it has begun to lead.
    if _READ_ANEW in os.environ and main_process() != slurmctld:
        return False
    return not (IN_VAIN.exists() and IN_VAIN.read_text(encoding="utf-8") == str(slurmctld))


@contextmanager
def alone(name: str) -> Iterator[str]:
    """A slurm.conf that names no other controller.

    By the common one Slurm's commands ask the first one first. One that hangs takes the connection, and says
    nothing.
    """
    kept = []
    for line in CONFIGURATION.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True):
        named = controllers(line)
        if not named or named[0][0] == name:
            kept.append(line)
    with tempfile.TemporaryDirectory(prefix="slurmctld-took-over-") as directory:
        place = Path(directory) / "slurm.conf"
        place.write_text("".join(kept), encoding="utf-8")
        yield str(place)


def speak(slurmctld: int, name: str) -> None:
    """Has it read its configuration anew, once it answers."""
    with alone(name) as place:
        _speak(slurmctld, ("env", f"SLURM_CONF={place}"))


def _speak(slurmctld: int, alone_here: tuple[str, str]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        code, said = run(*alone_here, "sdiag")
        if code == 0:
            break
        if main_process() != slurmctld:
            return
        if time.monotonic() > deadline:
            syslog.syslog(
                syslog.LOG_ERR,
                "this controller took over, and accounts for nothing, because it does not answer: "
                f"{said}. When it does: scontrol reconfigure",
            )
            return
        time.sleep(_PAUSE_SECONDS)
    code, said = run(*alone_here, "scontrol", "reconfigure")
    if code == 0:
        syslog.syslog("this controller took over, and has read its configuration anew, so that it accounts")
    elif main_process() == slurmctld:  # else it did, and the answer was lost
        syslog.syslog(
            syslog.LOG_ERR,
            "this controller took over, and accounts for nothing, because it does not read its configuration "
            f"anew: {said}. Put that right, then: scontrol reconfigure",
        )
        with suppress(OSError):
            IN_VAIN.write_text(str(slurmctld), encoding="utf-8")


def main() -> int:
    """Looks, and leaves the rest to a process of its own."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        pass
    os.close(number)
    slurmctld = os.getppid()
    name = socket.gethostname().partition(".")[0]
    if not (keeps_it_to_itself() and took_over(slurmctld, name)) or os.fork():
        return 0
    os.setsid()
    syslog.openlog("slurmctld-took-over")
    speak(slurmctld, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())

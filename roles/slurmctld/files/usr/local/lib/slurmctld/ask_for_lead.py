"""Before the first of several slurmctld starts: another one that leads ends, so that two never write at once.

The first one leads when it starts. Slurm has the other one step back then, and both write to the state
meanwhile. So that one is told to end first; systemd starts it there to stand by, and only then does this one
start. Where it cannot be reached, it is waited for as long as its heartbeat goes on.

The unit slurmctld runs this, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIGURATION = Path("/etc/slurm/slurm.conf")
_CONTROLLER = re.compile(
    r"^\s*SlurmctldHost\s*=\s*([^\s(#]+)(?:\(([^)\s]+)\))?", re.IGNORECASE | re.MULTILINE
)
_SETTING = r"^\s*{}\s*=\s*([^\s#]+)"
_STANDS_BY = "standby mode"
_HEARTBEAT = struct.Struct(">QQ")
"""When, and the place in slurm.conf of the one that leads."""
_BEATS = 4
"""A slurmctld that leads writes so many heartbeats in SlurmctldTimeout seconds."""
_SECONDS, _SECONDS_TO_END, _SECONDS_TO_ANSWER, _PAUSE = 120, 30, 10, 0.5
LEADS, STANDS_BY, IS_GONE, SILENT = "leads", "stands by", "is gone", "silent"


def setting(text: str, name: str, default: str) -> str:
    """A parameter of slurm.conf."""
    found = re.search(_SETTING.format(name), text, re.IGNORECASE | re.MULTILINE)
    return found.group(1) if found else default


def controllers(text: str) -> dict[str, str]:
    """The controllers of slurm.conf, the first one first, and where each is reached."""
    return {name: address or name for name, address in _CONTROLLER.findall(text)}


def naming(text: str, name: str) -> str:
    """The slurm.conf with one controller alone."""

    def is_kept(line: str) -> bool:
        found = _CONTROLLER.match(line)
        return found is None or found.group(1) == name

    return "".join(line for line in text.splitlines(keepends=True) if is_kept(line))


class Others:
    """The other controllers, each with a slurm.conf that names it alone."""

    def __init__(self, text: str, directory: Path) -> None:
        self.addresses = dict(list(controllers(text).items())[1:])
        self._port = int(setting(text, "SlurmctldPort", "6817").partition("-")[0])
        self._places = {}
        for name in self.addresses:
            self._places[name] = directory / f"{name}.conf"
            self._places[name].write_text(naming(text, name), encoding="utf-8")

    def stand(self, name: str) -> str:
        """How one of them stands: one that is gone refuses connections, one that is silent does not."""
        # Slurm's commands would try again and again.
        try:
            socket.create_connection((self.addresses[name], self._port), 3).close()
        except ConnectionRefusedError:
            return IS_GONE
        except OSError:
            return SILENT
        said, succeeded = self._ask(name, "sdiag")
        if succeeded:
            return LEADS
        return STANDS_BY if _STANDS_BY in said else SILENT

    def end(self, name: str) -> None:
        """Tells it to save the state and to end."""
        self._ask(name, "scontrol", "shutdown", "slurmctld")

    def _ask(self, name: str, *command: str) -> tuple[str, bool]:
        try:
            done = subprocess.run(
                ("timeout", str(_SECONDS_TO_ANSWER), *command),
                env={**os.environ, "LC_ALL": "C", "SLURM_CONF": str(self._places[name])},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        except OSError as problem:
            return str(problem), False
        return done.stdout, done.returncode == 0


def heartbeat(directory: str) -> tuple[int, int] | None:
    """When the last heartbeat was written, and by which controller; None where there is none."""
    try:
        when, place = _HEARTBEAT.unpack(Path(directory, "heartbeat").read_bytes()[: _HEARTBEAT.size])
    except (OSError, struct.error):
        return None
    return when, place


def is_written(text: str) -> bool:
    """Whether another controller writes to the state at this time, reached or not."""
    directory = setting(text, "StateSaveLocation", "/var/spool")
    timeout = int(setting(text, "SlurmctldTimeout", "120"))
    before = heartbeat(directory)
    # An old one is nobody's; which clock is right is not known here, so that one that seems new is watched.
    if before is None or before[1] == 0 or abs(time.time() - before[0]) > timeout + 60:
        return False
    deadline = time.monotonic() + 1.5 * timeout / _BEATS + 1
    while time.monotonic() < deadline:
        if heartbeat(directory) != before:
            return True
        time.sleep(_PAUSE)
    return False


def wait_for_lead(text: str, others: Others) -> str:
    """Comes back when nobody else leads any more: empty, or who is in the way."""
    deadline = time.monotonic() + _SECONDS
    told: dict[str, float] = {}
    while True:
        stand = {name: others.stand(name) for name in others.addresses}
        for name, how in stand.items():
            if how == LEADS and name not in told:
                sys.stderr.write(f"{name} leads; it is told to end, and stands by afterwards\n")
                others.end(name)
                told[name] = time.monotonic()
        waited_for = [name for name, how in stand.items() if _is_in_the_way(how, told.get(name))]
        if not waited_for and (SILENT not in stand.values() or not is_written(text)):
            return ""
        if time.monotonic() > deadline:
            return ", ".join(waited_for) or "another controller that is not reached"
        time.sleep(_PAUSE)


def _is_in_the_way(how: str, told: float | None) -> bool:
    """Whether one may be writing still.

    What was told to end has closed its port before it has saved all; it has ended when it stands by.
    """
    if how == LEADS:
        return True
    return told is not None and how != STANDS_BY and time.monotonic() - told < _SECONDS_TO_END


def main(host: str = "") -> int:
    """Exit code 0 when slurmctld may start."""
    try:
        text = CONFIGURATION.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    names = list(controllers(text))
    if not names[1:] or names[0] != (host or socket.gethostname().partition(".")[0]):
        return 0
    with tempfile.TemporaryDirectory(prefix="deploy-lead-") as directory:
        if who := wait_for_lead(text, Others(text, Path(directory))):
            sys.stderr.write(
                f"slurmctld does not start: {who} leads and does not end; two would write at once. There: "
                "systemctl restart slurmctld; if nobody can, systemctl kill --signal=KILL slurmctld\n"
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""Whether the slurmctld of one of several controllers may start now; systemd asks before each start.

Slurm itself does not ask. A first controller takes the lead whenever it starts: with an empty queue where the
storage of the state is not mounted yet, and beside another one that leads and does not hear it. So this fails
then, with why, and systemd tries again until it is otherwise.

Called with StateSaveLocation and the number (inode) of the file in it by which controllers know that they
share it; runs as the user slurm, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import re
import socket
import struct
import sys
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CONFIGURATION = Path("/etc/slurm/slurm.conf")
MARK = "deploy_shared"
_HEARTBEAT = struct.Struct(">QQ")
"""When the slurmctld that leads wrote it, and its place in slurm.conf."""
_HOST = re.compile(r"^\s*SlurmctldHost\s*=\s*([^\s(#]+)(?:\(([^)]+)\))?", re.IGNORECASE | re.MULTILINE)
_NUMBER = r"^\s*{}\s*=\s*(\d+)"
_CONNECT_SECONDS = 5
_SLACK_SECONDS = 3


def state_trouble(state: Path, mark: int) -> str:
    """Why the directory is not the one that the controllers share; empty where it is."""
    hint = "If it shall be this one: deploy cluster INVENTORY"
    try:
        found = (state / MARK).stat().st_ino
    except FileNotFoundError:
        return f"{state} is not what the controllers share, or is not mounted yet: it has no {MARK}. {hint}"
    except OSError as problem:
        return f"{state} cannot be read: {problem.strerror}"
    if found != mark:
        return (
            f"{state} is another directory than when deploy was here ({MARK} is {found}, not {mark}). {hint}"
        )
    return ""


def controllers(configuration: str) -> list[tuple[str, str]]:
    """Name and address of each, the first one first."""
    return [(name, address or name) for name, address in _HOST.findall(configuration)]


def number(configuration: str, parameter: str, default: int) -> int:
    """A parameter of slurm.conf that is a number."""
    found = re.search(_NUMBER.format(parameter), configuration, re.IGNORECASE | re.MULTILINE)
    return int(found.group(1)) if found else default


def beat(state: Path) -> tuple[int, int] | None:
    """When somebody led last, and whose place that is; None where nobody did."""
    for _ in range(3):  # a new one takes the place of the old one just now
        try:
            when, place = _HEARTBEAT.unpack((state / "heartbeat").read_bytes()[: _HEARTBEAT.size])
        except (OSError, struct.error):
            time.sleep(0.1)
        else:
            return int(when), int(place)
    return None


def is_reached(address: str, port: int) -> bool:
    """Whether a host answers, be it that no slurmctld runs there."""
    try:
        socket.create_connection((address, port), _CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def lead_trouble(
    state: Path,
    configuration: str,
    name: str,
    *,
    reaches: Callable[[str, int], bool] = is_reached,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Who leads and would not hear that this first controller takes the lead; empty where nobody does."""
    known = controllers(configuration)
    before = beat(state)
    if not known or known[0][0] != name or before is None or not 0 < before[1] < len(known):
        return ""
    other, address = known[before[1]]
    if reaches(address, number(configuration, "SlurmctldPort", 6817)):
        return ""
    # As often as slurmctld itself writes it.
    sleep(min(number(configuration, "SlurmctldTimeout", 120) // 4, 30) + _SLACK_SECONDS)
    after = beat(state)
    if after is None or after == before:
        return ""
    return (
        f"{known[after[1]][0] if after[1] < len(known) else other} leads, and cannot be reached at {address}"
    )


def main(state: str, mark: str) -> int:
    """Exit code 1 where it may not, with why."""
    directory = Path(state)
    why = state_trouble(directory, int(mark))
    if not why:
        text = CONFIGURATION.read_text(encoding="utf-8", errors="replace")
        why = lead_trouble(directory, text, socket.gethostname().partition(".")[0])
    if why:
        sys.stderr.write(f"slurmctld does not start: {why}\n")
    return int(bool(why))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

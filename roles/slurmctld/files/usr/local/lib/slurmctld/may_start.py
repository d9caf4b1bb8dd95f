#!/usr/bin/python3
"""Whether the slurmctld of one of several controllers may start now; systemd asks before each start.

Slurm itself does not ask. A first controller takes the lead whenever it starts: with an empty queue where the
storage of the state is not mounted yet; with the configuration of before it was away, by which jobs end that
are on nodes which came since; and beside another one that leads and does not hear it. So this fails then,
with why, and systemd tries again until it is otherwise.

Called with StateSaveLocation and the number (inode) of the file in it by which controllers know that they
share it. Started as root it reads what is root's, and is the user slurm from then on: on the storage of the
state root may be nobody. Written with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import os
import pwd
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
OWN = Path("/var/lib/deploy/slurmctld/deploy_configuration")
"""Which configuration this host has."""
LAST = "deploy_configuration"
"""In the state: with which ones a slurmctld may lead."""
LEFT = "deploy_moved"
"""In a directory that was the state: where that is since."""
MARK = "deploy_shared"
_HEARTBEAT = struct.Struct(">QQ")
"""When the slurmctld that leads wrote it, and its place in slurm.conf."""
_HOST = re.compile(r"^\s*SlurmctldHost\s*=\s*([^\s(#]+)(?:\(([^)]+)\))?", re.IGNORECASE | re.MULTILINE)
_NUMBER = r"^\s*{}\s*=\s*(\d+)"
_STATE = re.compile(r"^\s*StateSaveLocation\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)
_CONNECT_SECONDS = 5
_SLACK_SECONDS = 3


def state_trouble(state: Path, mark: int) -> str:
    """Why the directory is not the one that the controllers share; empty where it is."""
    hint = "Mount it. Where it was copied here from other storage: deploy cluster INVENTORY"
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


def configuration_trouble(state: Path, own: str) -> str:
    """Why the configuration is not the one that the cluster was given last; empty where nobody knows."""
    try:
        if (state / LEFT).exists():
            now = (state / LEFT).read_text(encoding="utf-8", errors="replace").strip()
            return (
                f"the state was moved from {state} to {now} while this host was away: deploy cluster "
                f"INVENTORY. If {state} shall be it again: rm {state / LEFT}"
            )
        last = (state / LAST).read_text(encoding="utf-8", errors="replace").split()
    except FileNotFoundError:
        return ""
    except OSError as problem:
        return f"{state} cannot be read: {problem.strerror}"
    if not own or not last or own in last:
        return ""
    return (
        "the cluster was given another configuration while this host was away, and jobs would end that are "
        "on what it does not know. Where it is a controller: deploy cluster INVENTORY, without those in "
        "[slurm-master] that are lost for good. Where it is none any more: systemctl disable --now slurmctld"
    )


def controllers(configuration: str) -> list[tuple[str, str]]:
    """Name and address of each, the first one first."""
    return [(name, address or name) for name, address in _HOST.findall(configuration)]


def number(configuration: str, parameter: str, default: int) -> int:
    """A parameter of slurm.conf that is a number."""
    found = re.search(_NUMBER.format(parameter), configuration, re.IGNORECASE | re.MULTILINE)
    return int(found.group(1)) if found else default


def beat(state: Path) -> tuple[int, int] | None:
    """When somebody led last, and whose place that is; None where nobody did. Raises OSError."""
    unread: OSError | None = None
    for _ in range(3):  # a new one takes the place of the old one just now
        unread = None
        try:
            when, place = _HEARTBEAT.unpack((state / "heartbeat").read_bytes()[: _HEARTBEAT.size])
        except (FileNotFoundError, struct.error):
            time.sleep(0.1)
        except OSError as problem:
            unread = problem
            time.sleep(0.1)
        else:
            return int(when), int(place)
    if unread:
        raise unread
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


def text_of(path: Path) -> str:
    """What a file says; nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def become_slurm() -> str:
    """Leaves what root may do; why it cannot."""
    if os.geteuid():
        return ""
    try:
        user = pwd.getpwnam("slurm")
    except KeyError:
        return "there is no user slurm"
    os.initgroups(user.pw_name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    return ""


def trouble(state: Path, mark: int) -> str:
    """Why it may not start; empty where it may."""
    configuration, own = text_of(CONFIGURATION), text_of(OWN)
    found = _STATE.search(configuration)
    name = socket.gethostname().partition(".")[0]
    try:
        return (
            become_slurm()
            or state_trouble(state, mark)
            or configuration_trouble(Path(found.group(1)) if found else state, own)
            or lead_trouble(state, configuration, name)
        )
    except OSError as problem:
        return f"{state} cannot be read: {problem.strerror}"


def main(state: str, mark: str) -> int:
    """Exit code 1 where it may not, with why."""
    if why := trouble(Path(state), int(mark)):
        sys.stderr.write(f"slurmctld does not start: {why}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

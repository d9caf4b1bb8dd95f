"""What deploy runs on a node that is out of service: which boot it is, its reboot, whether it is well.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import json
from pathlib import Path

from deploy.run.host_commands import runner, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
FIRST_PROCESS = Path("/proc/1/stat")
HEALTH = Path("/usr/local/sbin/node_health")
_START_OF_A_PROCESS = 19
"""Its place behind the name in brackets, as proc(5) has it."""
_run = runner(50)


def boot() -> str:
    """Another one after each boot: a container's kernel outlives its reboot, its first process does not."""
    started = FIRST_PROCESS.read_text(encoding="utf-8").rpartition(")")[2].split()[_START_OF_A_PROCESS]
    return f"{BOOT_ID.read_text(encoding='utf-8').strip()} {started}"


def reboot() -> str:
    """Has systemd reboot the machine, which it does a moment later; gives why it refuses, or nothing."""
    said, succeeded = _run("systemctl", "--no-block", "reboot")
    return "" if succeeded else said.strip() or "systemctl reboot failed"


def faults() -> list[list[str]]:
    """Why the node is not fit for jobs, by its own health check: kind, subject and words of each fault."""
    if not HEALTH.exists():
        return [["health check", "", f"{HEALTH} is not there: deploy cluster installs it"]]
    if not _run("systemctl", "is-active", "--quiet", "slurmd")[1]:
        return [["service", "slurmd", "slurmd does not run"]]
    said, succeeded = _run(str(HEALTH), "--show", "--json")
    try:
        return [] if succeeded else [[str(word) for word in fault] for fault in json.loads(said)]
    except ValueError:
        return _in_words()


def _in_words() -> list[list[str]]:
    """The same from a health check of before, which has no kinds."""
    said, succeeded = _run(str(HEALTH), "--show")
    lines = said.strip().splitlines() or ["its health check gives no answer"]
    return [] if succeeded else [["health check", "", line] for line in lines]


def settle() -> str:
    """Has the health check take back its own drain where nothing is wrong any more, and not minutes later."""
    said, succeeded = _run(str(HEALTH))
    return "" if succeeded else said.strip()


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line."""
    verbs: dict[str, Callable[..., Any]] = {
        "boot": boot,
        "reboot": reboot,
        "faults": faults,
        "settle": settle,
    }
    tell(verbs[verb](**arguments))

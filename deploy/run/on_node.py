"""What deploy runs on a node that is out of service: which boot it is, its reboot, whether it is well.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
FIRST_PROCESS = Path("/proc/1/stat")
HEALTH = Path("/usr/local/sbin/node_health")
_SECONDS = 50
_START_OF_A_PROCESS = 19
"""Its place behind the name in brackets, as proc(5) has it."""


def _run(*command: str) -> tuple[str, bool]:
    """What a command prints, and whether it succeeded; whatever happens is an answer."""
    try:
        done = subprocess.run(
            ("timeout", str(_SECONDS), *command),
            env={
                **os.environ,
                "LC_ALL": "C",
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as problem:
        return type(problem).__name__, False
    return done.stdout, done.returncode == 0


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
    sys.stdout.write("\ndeploy:" + json.dumps(verbs[verb](**arguments)) + "\n")

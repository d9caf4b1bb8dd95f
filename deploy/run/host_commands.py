"""What the programs that deploy sends to hosts share: how they run a command, and how they answer.

Sent before them as text over ssh, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

# Typing takes longer to import than the rest takes to run.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# A site's own form of times, in /etc/environment, is not for programs.
_ENVIRONMENT = {
    "LC_ALL": "C",
    "SLURM_TIME_FORMAT": "standard",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}


def runner(seconds: int) -> Callable[..., tuple[str, bool]]:
    """A function that runs a command for at most so many seconds: what it prints, and whether it succeeded.

    Whatever happens is an answer.
    """

    def run(*command: str) -> tuple[str, bool]:
        try:
            done = subprocess.run(
                ("timeout", str(seconds), *command),
                env={**os.environ, **_ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                cwd="/",
                check=False,
            )
        except OSError as problem:
            return type(problem).__name__, False
        return done.stdout, done.returncode == 0

    return run


def last_line(said: str) -> str:
    """The last line of an answer that is not empty; empty where there is none."""
    return ([line.strip() for line in said.splitlines() if line.strip()] or [""])[-1]


def tell(answer: Any) -> None:  # noqa: ANN401 - whatever the caller reads
    """Prints the answer as one line, which the caller knows by its beginning."""
    sys.stdout.write("\ndeploy:" + json.dumps(answer) + "\n")
    sys.stdout.flush()

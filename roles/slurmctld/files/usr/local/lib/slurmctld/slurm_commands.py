"""How the programs beside this one ask Slurm. Written with the standard library of Python 3.9 alone."""

from __future__ import annotations

import re
import subprocess

_ANSWER_SECONDS = 100
_LEADS = re.compile(r"^Slurmctld\(\w+\) at (\S+) is UP$", re.MULTILINE)


def run(*command: str, told: str = "") -> tuple[int, str]:
    """Exit code and what it said, to both of its outputs; one that does not answer is not waited for."""
    try:
        done = subprocess.run(
            command,
            input=told,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return 1, str(problem)
    return done.returncode, done.stdout.strip()


def leads(ping: str, controller: str) -> bool:
    """Whether this controller is the first one that answers, as `scontrol ping` says."""
    return _LEADS.findall(ping)[:1] == [controller]

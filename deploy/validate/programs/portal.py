"""Asks the portal on its host for a server, by the program that its role puts there, as root.

``check`` is called with ``{"user", "seconds"}`` and returns ``{"why", "seconds"}``; why is empty where it
worked.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

_PYTHON = "/opt/slurm-portal/environment/bin/python"
_CHECK = "/usr/local/lib/slurm-portal/portal_check.py"
_AT_THE_END = 30


def check(arguments: dict[str, Any]) -> dict[str, Any]:
    """What came of it."""
    if not os.path.exists(_CHECK):
        return {"why": "the role slurm_portal was not deployed here"}
    seconds = str(arguments["seconds"])
    try:
        done = subprocess.run(
            [_PYTHON, "-sE", _CHECK, arguments["user"], seconds],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd="/",
            timeout=float(seconds) + _AT_THE_END,
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return {"why": str(problem)[:300]}
    except ValueError:
        return {"why": (done.stderr.strip() or f"exit code {done.returncode}")[-300:]}
    return answer

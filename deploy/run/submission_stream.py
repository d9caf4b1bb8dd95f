"""What deploy runs on a login node while it upgrades Slurm: a short job of the validation user every second.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone. Says of each attempt
when it began, how long it took and the job's id, and ends with its connection.
"""

from __future__ import annotations

import os
import select
import subprocess
import time

from deploy.run.host_commands import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_EVERY = 1.0
_PATIENCE = 120


def stream(user: str) -> None:
    """Submits until a line comes, or the connection ends."""
    given = [f"--partition={user}", f"--account={user}", "--job-name=deploy-upgrade", "--mem=10M", "--time=1"]
    words = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", *given, "--wrap=true"]
    command = ["timeout", str(_PATIENCE), "su", "--login", user, "--command", " ".join(words)]
    while True:
        began = time.monotonic()
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        lines = done.stdout.strip().splitlines()
        job = lines[-1].split(";")[0] if done.returncode == 0 and lines else ""
        said = done.stderr.strip()[-200:]
        tell({"at": began, "seconds": time.monotonic() - began, "job": job, "said": said})
        rest = max(0.0, began + _EVERY - time.monotonic())
        if select.select([0], [], [], rest)[0]:
            return


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does the one thing that it can, until nobody listens."""
    try:
        {"stream": stream}[verb](**arguments)
    except BrokenPipeError:
        os._exit(0)

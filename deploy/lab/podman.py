"""Runs podman and turns its refusals into errors an admin can act on."""

import json
import shlex
import subprocess
from typing import Any

from deploy.errors import ExitCode, error


def podman(*arguments: str, data: bytes | None = None) -> str:
    """Run podman; returns what it printed, raises a DeployError when it failed."""
    command = ["podman", *arguments]
    # Without data podman gets no input at all: it must never eat what was meant for the caller.
    answer = subprocess.run(
        command,
        input=data,
        stdin=subprocess.DEVNULL if data is None else None,
        capture_output=True,
        check=False,
        # Ctrl-C stops us, not podman half-way: it would leave addresses that it never gives out again.
        process_group=0,
    )
    if answer.returncode != 0:
        said = answer.stderr.decode(errors="replace").strip().splitlines() or ["it gave no reason"]
        raise error(
            "podman-failed",
            f"podman failed: {said[-1]}",
            hint=f"see what it says when you type: {shlex.join(command)}",
            exit_code=ExitCode.FAILED,
        )
    return answer.stdout.decode(errors="replace").strip()


def query(*arguments: str) -> Any:  # noqa: ANN401 - the shape depends on the question
    """Run a podman command that answers in JSON, and read the answer."""
    return json.loads(podman(*arguments, "--format", "json") or "[]") or []


def succeeds(*arguments: str) -> bool:
    """Whether podman does this without complaint (``image exists`` and the like)."""
    return subprocess.run(["podman", *arguments], capture_output=True, check=False).returncode == 0

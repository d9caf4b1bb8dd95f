"""What the tests of all scenarios use: commands on a scenario's machines."""

import os
import subprocess
from typing import Protocol

import pytest


class On(Protocol):
    """``on("trixie", "command", "argument")`` runs a command on the machine of that name."""

    def __call__(
        self, machine: str, /, *command: str, data: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def on() -> On:
    """Runs commands on machines; a command that fails, fails the test, with what it said."""
    prefix = f"molecule-{os.environ['MOLECULE_SCENARIO_NAME'].replace('_', '-')}-"

    def run(
        machine: str, /, *command: str, data: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        answer = subprocess.run(
            ["podman", "exec", "--interactive", prefix + machine, *command],
            input=data,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and answer.returncode != 0:
            pytest.fail(f"{machine}: {' '.join(command)}: {answer.stdout}{answer.stderr}")
        return answer

    return run

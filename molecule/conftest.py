"""What the tests of all scenarios use: the machines, commands on them, and the playbook once more."""

import json
import os
import subprocess
import time
from pathlib import Path
from subprocess import CompletedProcess
from typing import Protocol

import pytest

from tests.containers import inside

# Molecule's own variable says when a scenario has but one of its machines.
_ONLY = os.environ.get("MOLECULE_PLATFORM_NAME", "").rpartition("-")[2]
MACHINES = [name for name in ("bookworm", "trixie") if _ONLY in {"", name}]


class On(Protocol):
    """``on("trixie", "command", "argument")`` runs a command on the machine of that name."""

    def __call__(
        self, machine: str, /, *command: str, data: str = "", check: bool = True
    ) -> CompletedProcess[str]: ...


ASK = ("curl", "--silent", "--fail", "--retry", "60", "--retry-all-errors", "--retry-delay", "1")
"""Asks a page until it answers: what was just started reads its data first."""


class Converge(Protocol):
    """``converge(only="trixie", tags="configure", size=3)`` plays it there again with another size."""

    def __call__(
        self, *options: str, only: str = "", tags: str = "", **variables: object
    ) -> CompletedProcess[str]: ...


def _scenario() -> str:
    return os.environ["MOLECULE_SCENARIO_NAME"]


def _machine(name: str) -> str:
    """The whole name of a machine, which is its container's and Ansible's."""
    return f"molecule-{_scenario().replace('_', '-')}-{name}"


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def on() -> On:
    """Runs commands on machines; a command that fails, fails the test, with what it said."""

    def run(machine: str, /, *command: str, data: str = "", check: bool = True) -> CompletedProcess[str]:
        answer = subprocess.run(
            inside(_machine(machine), *command),
            input=data,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and answer.returncode != 0:
            pytest.fail(f"{machine}: {' '.join(command)}: {answer.stdout}{answer.stderr}")
        return answer

    return run


@pytest.fixture(scope="session")
def converge() -> Converge:
    """Plays the scenario's converge.yml again with other values; the test says how that has to end."""

    def play(*options: str, only: str = "", tags: str = "", **variables: object) -> CompletedProcess[str]:
        command = [
            "ansible-playbook",
            f"--inventory={os.environ['MOLECULE_INVENTORY_FILE']}",
            f"--extra-vars={json.dumps(variables)}",
            *([f"--limit={_machine(only)}"] if only else []),
            *([f"--tags={tags}"] if tags else []),
            *options,
            str(Path(__file__).parent / _scenario() / "converge.yml"),
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return play


@pytest.fixture
def idle(on: On, machine: str) -> str:
    """The machine, once its node waits for jobs."""
    deadline = time.monotonic() + 30
    while (state := on(machine, "sinfo", "--noheader", "--format=%T").stdout) != "idle\n":
        assert time.monotonic() < deadline, state + on(machine, "sinfo", "--list-reasons").stdout
        time.sleep(0.5)
    return machine

"""Runs every Molecule scenario, two at a time; shows how long each took and the output of those that fail.

``python molecule/run.py [SCENARIO ...]``
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from deploy.run.settings import is_mitogen_supported, mitogen_environment

ROOT = Path(__file__).resolve().parents[1]
_AT_ONCE = 2


@dataclass(frozen=True)
class Result:
    """How one scenario ended."""

    scenario: str
    passed: bool
    seconds: float
    output: str


def scenarios() -> list[str]:
    """The names of all scenarios."""
    return sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))


def environment() -> Mapping[str, str]:
    """Molecule finds its programs, and Ansible the strategy that halves a scenario's time."""
    mitogen = mitogen_environment() if is_mitogen_supported() else {}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "NO_COLOR": "1", **mitogen}


def run(scenario: str) -> Result:
    """Runs one scenario from create to destroy."""
    began = time.monotonic()
    command = [sys.executable, "-m", "molecule", "test", "--scenario-name", scenario]
    with tempfile.TemporaryDirectory(prefix="molecule-") as state:
        ended = subprocess.run(
            command,
            cwd=ROOT,
            # With what Molecule remembers of another run it would not create the machines.
            env={**environment(), "MOLECULE_EPHEMERAL_DIRECTORY": state},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    return Result(scenario, ended.returncode == 0, time.monotonic() - began, ended.stdout)


def main(chosen: list[str]) -> int:
    """Runs the chosen scenarios, or all; returns the exit code."""
    results = []
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for result in pool.map(run, chosen or scenarios()):
            results.append(result)
            verdict = "passed" if result.passed else "FAILED"
            sys.stdout.write(f"{verdict}  {result.scenario:<16} {result.seconds:6.1f} s\n")
            if not result.passed:
                sys.stdout.write(result.output)
            sys.stdout.flush()
    failed = sum(not result.passed for result in results)
    sys.stdout.write(f"{len(results) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

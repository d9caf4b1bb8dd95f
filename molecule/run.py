"""Runs Molecule scenarios, three at a time; shows how long each took and the output of those that fail.

``python molecule/run.py [--every-release] [--roles PART] [SCENARIO …]``. A scenario that is named runs on all
its machines. None begins after the time BEGIN_UNTIL, in seconds since the epoch; those are named. With
ONCE_MORE a few that failed are run again on fresh machines, and those that pass then are called flaky.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from deploy.run.settings import is_mitogen_supported, mitogen_environment

ROOT = Path(__file__).resolve().parents[1]
_AT_ONCE = 3
_MOST_FLAKY = 2
_RELEASE = "trixie"
_SECONDS_TO_ANSWER = "60"  # two cores boot and install for up to nine machines at once
OF_EVERY_CLUSTER = frozenset(
    (
        *("bootstrap", "hosts_file", "time_sync", "user_environment", "users"),
        *("mariadb", "munge", "slurm_accounts", "slurm_auth", "slurm_client", "slurm_packages"),
        *("slurmctld", "slurmd", "slurmdbd", "environment_modules", "node_health", "scratch"),
        *("job_ssh", "login_limits", "motd", "seff", "slurm_reservations", "ssh_hosts", "ssh_server"),
    )
)
"""Roles that no cluster is without; all others are added by a site that wants them."""
ON_EVERY_RELEASE = frozenset(
    (
        *("bootstrap", "cuda_toolkit", "gpu_exporter", "nvidia_driver", "nvidia_repository"),
        *("mariadb", "ml_stack", "openmpi", "pyxis", "slurm_client", "slurm_packages", "slurmctld"),
        *("firewall", "log_server", "munge", "nfs_server", "package_cache", "ssh_hosts", "sssd"),
        *("mariadb_arbiter", "slurm_registry", "slurm_rest", "software_tree", "time_sync"),
    )
)
"""Roles that do different things on different releases, and those whose machines talk to each other; all
others are tried on one. All of Slurm runs on both in the cluster tests."""


@dataclass(frozen=True)
class Result:
    """How one scenario ended."""

    scenario: str
    passed: bool
    seconds: float
    output: str
    was_run: bool = True


def scenarios(part: str, hour: int = 0) -> list[str]:
    """The names of all scenarios, of those of roles that every cluster has, or of all others.

    Which of them comes first depends on the hour: where time ends, it is not always the same that are left.
    """
    names = sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))
    wanted = {"all": (True, False), "plain": (True,), "added": (False,)}[part]
    found = [name for name in names if (name in OF_EVERY_CLUSTER) in wanted]
    first = hour % len(found)
    return [*found[first:], *found[:first]]


def environment(scenario: str, *, every_release: bool) -> Mapping[str, str]:
    """Ansible has a strategy twice as fast, a host a minute to answer; Molecule runs one machine or all."""
    is_whole = every_release or scenario in ON_EVERY_RELEASE
    only = {} if is_whole else {"MOLECULE_PLATFORM_NAME": f"molecule-{scenario.replace('_', '-')}-{_RELEASE}"}
    mitogen = mitogen_environment() if is_mitogen_supported() else {}
    common = {"NO_COLOR": "1", "ANSIBLE_TIMEOUT": _SECONDS_TO_ANSWER}
    return {**os.environ, **common, **only, **mitogen}


def run(scenario: str, *, every_release: bool) -> Result:
    """Runs one scenario from create to destroy, unless it is too late to begin one."""
    if time.time() > float(os.environ.get("BEGIN_UNTIL") or "inf"):
        return Result(scenario, passed=False, seconds=0.0, output="", was_run=False)
    began = time.monotonic()
    python = sys.executable
    command = [
        python,
        "-m",
        "tests.one_ansible",
        python,
        "-m",
        "molecule",
        "test",
        "--scenario-name",
        scenario,
    ]
    with tempfile.TemporaryDirectory(prefix="molecule-") as state:
        ended = subprocess.run(
            command,
            cwd=ROOT,
            # With what Molecule remembers of another run it would not create the machines.
            env={**environment(scenario, every_release=every_release), "MOLECULE_EPHEMERAL_DIRECTORY": state},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    return Result(scenario, ended.returncode == 0, time.monotonic() - began, ended.stdout)


def main(chosen: list[str], part: str, *, every_release: bool) -> int:
    """Runs the chosen scenarios, or a part of them; returns the exit code."""
    results = {}
    one = partial(run, every_release=every_release or bool(chosen))
    hour = int(time.time() / 3600) if os.environ.get("BEGIN_UNTIL") else 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for result in pool.map(one, chosen or scenarios(part, hour)):
            results[result.scenario] = result
            _say(result)
    flaky = []
    for name in _worth_another_try(results.values()):
        again = one(name)
        _say(again)
        if again.passed:
            results[name] = again
            flaky.append(name)
    left = [result.scenario for result in results.values() if not result.was_run]
    failed = sum(not result.passed for result in results.values()) - len(left)
    passed = len(results) - failed - len(left)
    sys.stdout.write(f"{passed} passed, {failed} failed, {len(left)} not run\n")
    for name in flaky:
        sys.stdout.write(f"FLAKY {name}: it failed, and passed on fresh machines\n")
    if left:
        sys.stdout.write(f"NOT RUN, no time was left to begin them: {' '.join(left)}\n")
    return 1 if failed else 0


def _say(result: Result) -> None:
    if not result.was_run:
        return
    verdict = "passed" if result.passed else "FAILED"
    sys.stdout.write(f"{verdict}  {result.scenario:<19} {result.seconds:6.1f} s\n")
    if not result.passed:
        sys.stdout.write(result.output)
    sys.stdout.flush()


def _worth_another_try(results: Iterable[Result]) -> list[str]:
    """Where ONCE_MORE says so, what failed, if chance may be behind it: few did."""
    failed = [result.scenario for result in results if result.was_run and not result.passed]
    return failed if os.environ.get("ONCE_MORE") and len(failed) <= _MOST_FLAKY else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Runs Molecule scenarios.")
    parser.add_argument("--every-release", action="store_true", help="all scenarios on all releases")
    parser.add_argument("--roles", metavar="PART", choices=("all", "plain", "added"), default="all")
    parser.add_argument("scenario", nargs="*")
    arguments = parser.parse_args()
    sys.exit(main(arguments.scenario, arguments.roles, every_release=arguments.every_release))

"""A lab and the cluster on it, driven only by commands that an admin or a user would type."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from deploy.lab.enter import exec_command
from deploy.lab.machines import kind_named
from deploy.lab.state import Lab, container_name, need_lab
from tests.containers import inside

DEPLOY = (sys.executable, "-m", "deploy")
DAEMONS = ("munge", "chrony", "mariadb", "slurmdbd", "slurmctld", "slurmd", "sackd")
Result = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Cluster:
    """One lab, by name, with its directory."""

    name: str
    directory: Path
    release: str
    machines: str = "containers"

    @property
    def inventory(self) -> Path:
        return self.directory / "inventory.ini"

    def up(self, *options: str) -> Result:
        """`deploy lab up`."""
        return run(*DEPLOY, "lab", "up", "--name", self.name, "--dir", str(self.directory), *options)

    def power_all_on(self) -> None:
        """Starts the machines that are off; whether it could is no affair of the test that failed."""
        directory = ("--name", self.name, "--dir", str(self.directory))
        run(*DEPLOY, "lab", "up", *directory, expect=None, seconds=120)

    def down(self) -> Result:
        """`deploy lab down`."""
        return run(*DEPLOY, "lab", "down", "--name", self.name, "--delete-dir")

    def deploy(self, *options: str, expect: int = 0, validates: bool = False) -> Result:
        """`deploy cluster`, with plain output; what a validation finds has tests of its own."""
        options += ("--validate",) if validates else ("--no-validate",)
        return run(
            *DEPLOY, "cluster", str(self.inventory), "--output", "plain", *options, expect=expect, seconds=900
        )

    def deploy_refused(self, *options: str, expect: int) -> str:
        """What `deploy cluster` says when it refuses."""
        return run(*DEPLOY, "cluster", str(self.inventory), *options, expect=expect, seconds=300).stderr

    def plan(self, *options: str, expect: int = 0) -> str:
        """`deploy plan`."""
        return run(*DEPLOY, "plan", str(self.inventory), *options, expect=expect, seconds=300).stdout

    def check(self, *options: str, expect: int = 0) -> dict[str, Any]:
        """`deploy check --json`."""
        answer: dict[str, Any] = json.loads(
            run(*DEPLOY, "check", str(self.inventory), "--json", *options, expect=expect).stdout
        )
        return answer

    def report(self) -> dict[str, Any]:
        """`deploy report --json` of the last run."""
        answer: dict[str, Any] = json.loads(run(*DEPLOY, "report", str(self.inventory), "--json").stdout)
        return answer

    def status(self, *options: str, expect: int | None = 0) -> dict[str, Any]:
        """The hosts of `deploy status --json`, by name."""
        said = run(*DEPLOY, "status", str(self.inventory), "--json", *options, expect=expect).stdout
        hosts: dict[str, Any] = json.loads(said)["hosts"]
        return hosts

    def on(self, host: str, *command: str, expect: int | None = 0, seconds: float = 120) -> str:
        """Standard output of a root command on a host."""
        call = (
            inside(container_name(self.name, host), *command)
            if self.machines == "containers"
            else exec_command(_known(self.name), host, command, user=None, terminal=False)
        )
        return run(*call, expect=expect, seconds=seconds).stdout

    def as_user(
        self,
        script: str,
        *,
        user: str = "alice",
        host: str = "login1",
        expect: int | None = 0,
        seconds: float = 120,
    ) -> str:
        """Output of a user's login shell that runs a script, as if typed after ssh to the login node."""
        command = ("su", "--login", user, "--command", script)
        call = (
            ("podman", "exec", container_name(self.name, host), *command)
            if self.machines == "containers"
            else kind_named(self.machines).entered(_known(self.name), host, command, terminal=False)
        )
        result = run(*call, expect=expect, seconds=seconds)
        return result.stdout + result.stderr

    def power_off(self, *hosts: str) -> None:
        """Without a shutdown, and without a word to others, one right after the other."""
        containers = [container_name(self.name, host) for host in hosts]
        kind_named(self.machines).cut_off(containers)
        run("podman", "kill", "--signal", "KILL", *containers)
        run("podman", "wait", *containers)

    def power_on(self, *hosts: str) -> None:
        """Boots them one after the other, without waiting for any."""
        for host in hosts:
            kind_named(self.machines).start(container_name(self.name, host))

    def is_off(self, host: str) -> bool:
        """Whether a container has ended, as it does where its machine reboots."""
        said = run("podman", "inspect", "--format", "{{.State.Running}}", container_name(self.name, host))
        return said.stdout.strip() == "false"

    def node_states(self) -> dict[str, str]:
        """Node name -> compact state, as `sinfo` says."""
        lines = self.on("ctl1", "sinfo", "--noheader", "--Node", "--format", "%N %t").splitlines()
        return dict(line.split() for line in lines)

    def plain_states(self) -> dict[str, str]:
        """The same without the star by which Slurm marks a node that it waits for.

        On a busy machine one may have it at any moment, until Slurm asks again.
        """
        return {name: state.rstrip("*") for name, state in self.node_states().items()}

    def starts(self, *hosts: str) -> dict[tuple[str, str], str]:
        """(host, daemon) -> when systemd last started it, in microseconds since boot."""
        found = {}
        for host in hosts:
            shown = self.on(
                host,
                "systemctl",
                "show",
                "--property",
                "Id,ActiveState,InactiveExitTimestampMonotonic",
                *DAEMONS,
            )
            for unit in shown.strip().split("\n\n"):
                said = dict(line.split("=", 1) for line in unit.splitlines())
                if said["ActiveState"] == "active":
                    found[host, said["Id"].removesuffix(".service")] = said["InactiveExitTimestampMonotonic"]
        return found


@cache
def _known(lab: str) -> Lab:
    """A lab whose machines stay the same, so that each command need not ask podman for them."""
    return need_lab(lab)


@contextmanager
def booted(
    name: str,
    places: pytest.TempPathFactory,
    *options: str,
    release: str = "trixie",
    machines: str = "containers",
) -> Iterator[Cluster]:
    """Machines of a new lab, nothing deployed yet; removed at the end in any case."""
    made = Cluster(f"test-{name}-{os.getpid()}", places.mktemp(name), release, machines)
    try:
        made.up("--release", release, "--machines", machines, *options)
        yield made
    finally:
        made.down()


def run(*command: str, expect: int | None = 0, seconds: float = 300) -> Result:
    """Runs a command without input; fails the test, with all it said, on another exit code."""
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
    )
    if expect is not None:
        said = (
            f"{' '.join(command)}\n-> {result.returncode}\n{result.stdout[-6000:]}\n{result.stderr[-3000:]}"
        )
        assert result.returncode == expect, said
    return result


def wait_until(what: str, condition: Callable[[], bool], seconds: float) -> None:
    """Polls until a condition holds; fails the test when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still not: {what}"
        time.sleep(1)

"""Machines for one measurement: made fresh, removed in any case."""

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.lab.access import KeyDirectory
from deploy.run.patches import WITHOUT
from tests.bench.commands import BenchError, Finished, run

DEPLOY = (sys.executable, "-m", "deploy")
CONTROLLER, LOGIN = "ctl1", "login1"
FIRST_JOB_USER = "alice"
_HOST = re.compile(r"^(\S+) ansible_host=(\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Wish:
    """What machines the measurements run on."""

    nodes: int
    release: str


@dataclass(frozen=True)
class BenchLab:
    """A running lab; ``place`` holds its site directory and everything else that is written for it."""

    name: str
    place: Path
    addresses: Mapping[str, str]
    nodes: int
    without: str = ""
    """The patch that `deploy` is to leave out."""

    @property
    def site(self) -> Path:
        return self.place / "site"

    @property
    def inventory(self) -> Path:
        return self.site / "inventory.ini"

    @property
    def environment(self) -> dict[str, str]:
        """For `deploy`: its runs do not become the last run of the person who measures."""
        return {**os.environ, "XDG_STATE_HOME": str(self.place / "state"), WITHOUT: self.without}

    def on(self, host: str, script: str, data: bytes = b"") -> Finished:
        """Run a shell script as root on a host, by plain ssh."""
        keys = KeyDirectory(self.site / ".lab")
        # The same key exchange as in the lab's inventory, so that nobody is favoured.
        ssh = keys.ssh_command(
            self.addresses[host], "-o", "BatchMode=yes", "-o", "KexAlgorithms=curve25519-sha256"
        )
        return run([*ssh, shlex.join(["sudo", "sh", "-euc", script])], data=data)

    def first_job(self) -> None:
        """A user's job on all nodes: with its end, and not before, there is a cluster."""
        srun = f"srun --nodes={self.nodes} hostname"
        said = self.on(LOGIN, shlex.join(["su", "--login", FIRST_JOB_USER, "--command", srun])).text.split()
        expected = sorted(host for host in self.addresses if host not in {CONTROLLER, LOGIN})
        if sorted(said) != expected:
            raise BenchError("first-job", f"it ran on {said}, not on {expected}")


@contextmanager
def fresh_lab(name: str, place: Path, wish: Wish) -> Iterator[BenchLab]:
    """Machines on which nothing was deployed yet."""
    place.mkdir(parents=True)
    site = place / "site"
    try:
        run(
            [
                *DEPLOY,
                *("lab", "up", "--name", name, "--dir", str(site)),
                *("--nodes", str(wish.nodes), "--release", wish.release),
            ]
        )
        text = (site / "inventory.ini").read_text(encoding="utf-8")
        yield BenchLab(name, place, dict(_HOST.findall(text)), wish.nodes)
    finally:
        _take_down(name)


def _take_down(name: str) -> None:
    """Remove the machines; who presses Ctrl-C once more must not leave them behind."""
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        run([*DEPLOY, "lab", "down", "--name", name, "--delete-dir"])
    except BenchError as problem:
        sys.stderr.write(f"{problem}\n")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

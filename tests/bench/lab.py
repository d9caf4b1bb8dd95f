"""Machines for one measurement: made fresh, removed in any case."""

import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
    deploy: tuple[str, ...] = DEPLOY
    """The command that deploys it; the lab itself is always of this version."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Variables that say where its runs put what they need for themselves."""

    @property
    def site(self) -> Path:
        return self.place / "site"

    @property
    def inventory(self) -> Path:
        return self.site / "inventory.ini"

    @property
    def environment(self) -> dict[str, str]:
        """For `deploy`: its runs do not become the last run of the person who measures."""
        state = str(self.place / "state")
        return {**os.environ, **self.places, "XDG_STATE_HOME": state, WITHOUT: self.without}

    def more_nodes(self, nodes: int) -> "BenchLab":
        """The same lab with that many nodes, which are in its inventory and not deployed yet."""
        size = ("--nodes", str(nodes), "--write-inventory")
        run([*DEPLOY, "lab", "up", "--name", self.name, "--dir", str(self.site), *size])
        return replace(self, nodes=nodes)

    def settle(self) -> None:
        """Until its machines have started: whoever is measured first would wait for them, too."""
        for host in self.addresses:
            self.on(host, "systemctl is-system-running --wait || true")

    def wait_for(self, node: str) -> None:
        """Until Slurm would give the node a job."""
        is_idle = f"until sinfo -hN -n {node} -o %t | grep -qx idle; do sleep 0.2; done"
        self.on(CONTROLLER, f"timeout 30 sh -c '{is_idle}'")

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

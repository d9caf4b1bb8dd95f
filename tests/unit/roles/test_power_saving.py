"""The program that tells slurmctld which nodes it may switch off, with a scontrol that remembers."""

import fcntl
import socket
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from deploy.run import cluster_lock
from tests.unit.roles.loading import ROOT, load_module

ROLE = "roles/slurmctld"
PROGRAM = f"{ROLE}/files/power_saving.py"
ALL, ALWAYS_ON = "ctl1,node[1-4]", "ctl1"
_SCONTROL = """#!/bin/sh
case "$1" in
show) echo "SuspendExcNodes         = $(cat {place}/in_force)"
      echo "Slurmctld(primary) at {leads} is {mood}" ;;
update) value=${{2#SuspendExcNodes=}}; echo "${{value:-(null)}}" > {place}/in_force ;;
esac
"""


class Controller:
    """A controller with its files and a slurmctld."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.lock = place / "deploy-nodes.lock"
        (place / "slurm.conf").write_text(f"ClusterName=x\nSuspendExcNodes={ALL}\nSuspendTime=60\n")
        self.has_slurmctld()
        self.in_force = ALL

    def has_slurmctld(self, leads: str | None = None, mood: str = "UP") -> None:
        program = self.place / "scontrol"
        host = leads or socket.gethostname().partition(".")[0]
        program.write_text(_SCONTROL.format(place=self.place, leads=host, mood=mood))
        program.chmod(0o755)

    @property
    def in_force(self) -> str:
        return (self.place / "in_force").read_text().strip()

    @in_force.setter
    def in_force(self, nodes: str) -> None:
        (self.place / "in_force").write_text(f"{nodes}\n")


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return Controller(tmp_path)


@pytest.fixture
def program(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load_module(PROGRAM)
    monkeypatch.setattr(module, "CONFIGURATION", str(controller.place / "slurm.conf"))
    monkeypatch.setattr(module, "LOCK", str(controller.lock))
    return module


@pytest.fixture
def at_work(controller: Controller) -> Iterator[None]:
    """Two runs need the nodes."""
    with controller.lock.open("w") as one, controller.lock.open("w") as other:
        fcntl.flock(one, fcntl.LOCK_SH)
        fcntl.flock(other, fcntl.LOCK_SH)
        yield


def test_it_goes_by_the_lock_that_runs_hold() -> None:
    module = load_module(PROGRAM)
    names = yaml.safe_load((ROOT / ROLE / "vars/main.yml").read_text())
    program = names["__slurmctld_power_saving_program"]
    assert {"lock": module.LOCK, "program": program} == cluster_lock._POWER


@pytest.mark.parametrize("always_on", [ALWAYS_ON, ""])
def test_nodes_may_be_switched_off_while_no_run_is_at_work(
    program: ModuleType, controller: Controller, always_on: str
) -> None:
    program.main(always_on)
    assert controller.in_force == (always_on or "(null)")
    controller.lock.write_text("a run that has ended")
    program.main(always_on)
    assert controller.in_force == (always_on or "(null)")


@pytest.mark.usefixtures("at_work")
@pytest.mark.parametrize("before", [ALWAYS_ON, "(null)", ALL, "node7"])
@pytest.mark.parametrize("excepted", [ALWAYS_ON, None])
def test_none_is_switched_off_under_a_run(
    program: ModuleType, controller: Controller, before: str, excepted: str | None
) -> None:
    controller.in_force = before
    program.main(excepted)
    assert controller.in_force == ALL


def test_what_somebody_gave_slurmctld_by_hand_stays(program: ModuleType, controller: Controller) -> None:
    controller.in_force = "ctl1,node3"
    program.main(ALWAYS_ON)
    assert controller.in_force == "ctl1,node3"


def test_a_run_that_begins_releases_nothing(program: ModuleType, controller: Controller) -> None:
    """It calls the program without nodes; where its lock is lost at once, nothing is released."""
    program.main(None)
    assert controller.in_force == ALL


@pytest.mark.parametrize(("leads", "mood"), [("another", "UP"), (None, "DOWN")])
def test_a_controller_speaks_for_its_own_slurmctld(
    program: ModuleType, controller: Controller, leads: str | None, mood: str
) -> None:
    controller.has_slurmctld(leads, mood)
    program.main(ALWAYS_ON)
    assert controller.in_force == ALL


def test_without_slurmctld_nothing_is_wrong(program: ModuleType, controller: Controller) -> None:
    (controller.place / "scontrol").write_text("#!/bin/sh\nexit 1\n")
    program.main(ALWAYS_ON)
    assert controller.in_force == ALL

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deploy.engine import upgrade_state
from deploy.engine.options import Options
from deploy.engine.run import Run
from deploy.engine.upgrade_state import State
from deploy.errors import DeployError, ExitCode
from deploy.run.ssh import Unanswered
from deploy.site.inventory import read_site

INVENTORY = """
[slurm-master]
ctl1
[slurm-node]
node[1:2]
[slurm-cluster:children]
slurm-master
slurm-node
[slurm-cluster:vars]
slurm_packages_version=26.05
"""
OLD, NEW = "24.11.5-4", "26.05.5-1"


def host(version: str, **daemons: str) -> dict[str, Any]:
    return {"packages": {"slurm-client": version}, "broken": [], "plugin_waits": False, "daemons": daemons}


def node(version: str = NEW, *, answers: bool = True, states: tuple[str, ...] = ("IDLE",)) -> dict[str, Any]:
    return {"states": [*states], "answers": answers, "version": version, "reason": ""}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What hosts say to ``look``, and the controller to everything else."""
    answers: dict[str, Any] = {}

    def ask(questions: Mapping[str, tuple[str, Any]], *_: object, **__: object) -> dict[str, Any]:
        return {
            name: answers[name] if verb == "look" else answers[verb]
            for name, (verb, _arguments) in questions.items()
        }

    monkeypatch.setattr(upgrade_state, "ask", ask)
    monkeypatch.setattr(upgrade_state.State, "held", lambda _: set())
    return answers


@pytest.fixture
def state(tmp_path: Path) -> State:
    path = tmp_path / "inventory.ini"
    path.write_text(INVENTORY)
    run = SimpleNamespace(
        site=read_site(path),
        options=Options(),
        inventory="inventory.ini",
        command=lambda verb: f"deploy {verb} inventory.ini",
    )
    return State(cast("Run", run))


def test_what_is_left_follows_from_packages_and_daemons(state: State, said: dict[str, Any]) -> None:
    said["ctl1"] = host(NEW, slurmctld="active", slurmdbd="active")
    said["node1"] = host(NEW, slurmd="stale")
    said["node2"] = host(OLD, slurmd="active")
    assert state.left == ["node1", "node2"]


def test_what_dpkg_left_half_done_is_left(state: State, said: dict[str, Any]) -> None:
    said["ctl1"] = {"packages": {}, "broken": ["slurmctld"], "plugin_waits": False, "daemons": {}}
    said["node1"] = said["node2"] = host(NEW, slurmd="active")
    assert state.left == ["ctl1"]


def test_a_host_whose_plugin_was_not_installed_is_left(state: State, said: dict[str, Any]) -> None:
    said["ctl1"] = said["node1"] = host(NEW, slurmd="active")
    said["node2"] = {**host(NEW, slurmd="active"), "plugin_waits": True}
    assert state.left == ["node2"]


def test_a_host_without_slurm_is_no_upgrades(state: State, said: dict[str, Any]) -> None:
    said["ctl1"] = said["node1"] = host(NEW, slurmd="active")
    said["node2"] = {"packages": {}, "broken": [], "plugin_waits": False, "daemons": {}}
    assert state.left == []


def test_a_silent_host_ends_it(state: State, said: dict[str, Any]) -> None:
    said["ctl1"] = said["node1"] = host(OLD, slurmd="active")
    said["node2"] = Unanswered("no route to host")
    with pytest.raises(DeployError) as caught:
        state.looks()
    assert caught.value.exit_code is ExitCode.UNREACHABLE
    assert [(finding.where, finding.reference) for finding in caught.value.findings] == [
        ("node2", "host-silent")
    ]


def test_nodes_that_are_not_in_order_are_named(state: State, said: dict[str, Any]) -> None:
    nodes = {"node1": node(OLD), "node2": node(answers=False, states=("DOWN", "DRAIN"))}
    said["gate"] = {"slurmctld": "", "slurmdbd": "no answer", "nodes": nodes}
    assert state.troubles(["node1", "node2", "node9"], is_new=True) == {
        "ctl1": "slurmdbd: no answer",
        "node1": f"it registered as Slurm {OLD}",
        "node2": "its slurmd does not answer (down+drain)",
        "node9": "Slurm does not know it",
    }


def test_several_controllers_stand_as_they_should(tmp_path: Path, said: dict[str, Any]) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text(INVENTORY.replace("\nctl1\n", "\nctl1\nctl2\n"))
    run = SimpleNamespace(site=read_site(path), options=Options(), inventory="i", command=lambda _: "")
    state = State(cast("Run", run))
    said["gate"] = {"slurmctld": "", "slurmdbd": "", "nodes": {}}
    said["stand"] = {"ctl1": {"stands": "leads"}, "ctl2": {"stands": "stands by"}}
    assert state.troubles([]) == {}
    said["stand"] = {"ctl1": {"stands": "stands by"}, "ctl2": {"stands": "silent"}}
    assert state.troubles([]) == {
        "ctl1": "its slurmctld stands by, and should be one that leads",
        "ctl2": "its slurmctld does not answer, and should be one that stands by",
    }


def test_hosts_of_one_cluster_want_one_version(tmp_path: Path) -> None:
    path = tmp_path / "inventory.ini"
    path.write_text(INVENTORY.replace("\nctl1\n", "\nctl1 slurm_packages_version=25.11\n"))
    run = SimpleNamespace(site=read_site(path), inventory="inventory.ini")
    with pytest.raises(DeployError, match="upgrade-versions-differ"):
        _ = State(cast("Run", run)).wanted
    path.write_text(INVENTORY.replace("=26.05", "="))
    run.site = read_site(path)
    with pytest.raises(DeployError, match="upgrade-not-wanted"):
        _ = State(cast("Run", run)).wanted

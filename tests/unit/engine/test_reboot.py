"""Reboots of nodes: what proves one, and what is said of a node that does not come back."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import drains, fit
from deploy.engine import reboot as module
from deploy.engine.batches import Share, StoppedError
from deploy.engine.drains import Way
from deploy.engine.options import Options
from deploy.errors import DeployError
from deploy.run import drains as on_controller
from deploy.run.ssh import Unanswered
from tests.unit.run.slurm import Slurm
from tests.unit.site.sites import write_site

SITE = (
    "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-node]\n"
    "node1 ansible_host=10.0.0.2\nnode2 ansible_host=10.0.0.3\n"
)


@contextmanager
def nobody_else(*_: object, **__: object) -> Iterator[float]:
    yield 0.0


class Machines:
    """Each with its boot; a reboot begins another one, and slurmd registers anew, unless told otherwise."""

    def __init__(self, slurm: Slurm) -> None:
        self.slurm = slurm
        self.boots = {"node1": 1, "node2": 1}
        self.stays_off: set[str] = set()
        self.ignores: set[str] = set()
        self.refuses: dict[str, str] = {}
        self.faults: dict[str, list[list[str]]] = {}
        self.is_registering = True

    def ask(self, questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        return {name: getattr(self, f"_{verb}")(name) for name, (verb, _) in questions.items()}

    def _boot(self, name: str) -> object:
        is_off = name in self.stays_off and self.boots[name] > 1
        return Unanswered("No route to host") if is_off else str(self.boots[name])

    def _reboot(self, name: str) -> object:
        assert self.slurm.reasons[name], "not drained"
        if name in self.refuses:
            return self.refuses[name]
        if name not in self.ignores:
            self.boots[name] += 1
            if self.is_registering:
                self.slurm.started[name] = f"boot{self.boots[name]}"
        return Unanswered("Connection closed")

    def _faults(self, name: str) -> list[list[str]]:
        said = self.faults.get(name, [])
        return [["service", "", words] for words in said.pop(0)] if said else []


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    slurm = Slurm(tmp_path)
    del slurm.reasons["node3"]
    made = Machines(slurm)
    monkeypatch.setattr(on_controller, "_run", slurm.run)
    monkeypatch.setattr(on_controller, "LEDGER", tmp_path / "ledger/drains.json")
    monkeypatch.setenv("SUDO_USER", "alice")
    monkeypatch.setattr(fit, "ask", made.ask)
    monkeypatch.setattr(fit, "_POLL_SECONDS", 0)
    minutes = iter(range(0, 10**6, 60))
    monkeypatch.setattr("deploy.engine.fit.time.monotonic", lambda: float(next(minutes)))
    monkeypatch.setattr(module, "alone", nobody_else)
    verbs: dict[str, Callable[..., Any]] = {
        "listed": on_controller.listed,
        "drain": on_controller.drain,
        "resume": on_controller.resume,
        "hold": on_controller.hold,
    }

    def ask(questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        ((name, (verb, arguments)),) = questions.items()
        return {name: verbs[verb](**arguments)}

    monkeypatch.setattr(drains, "ask", ask)
    return made


def rebooted(tmp_path: Path, nodes: str = "node[1-2]") -> list[str]:
    inventory = write_site(tmp_path, SITE)
    came = module.reboot(inventory, nodes, "kernel", Options(), most=Share(1), way=Way(), say=print)
    return [node.name for node in came if not node.is_drained]


def stopped(tmp_path: Path) -> dict[str, str]:
    with pytest.raises(StoppedError) as problem:
        rebooted(tmp_path)
    assert problem.value.course.left == ("node2",)
    assert "'node[1-2]' --reason kernel" in problem.value.findings[0].hint
    return dict(problem.value.course.bad)


def test_nodes_reboot_one_after_the_other(machines: Machines, tmp_path: Path) -> None:
    assert rebooted(tmp_path) == ["node1", "node2"]
    assert machines.boots == {"node1": 2, "node2": 2}
    assert {*machines.slurm.reasons.values()} == {""}


def test_a_node_that_does_not_come_back_stays_drained(machines: Machines, tmp_path: Path) -> None:
    machines.stays_off = {"node1"}
    assert stopped(tmp_path) == {"node1": "it does not answer: No route to host (after 20 min)"}
    assert machines.boots["node2"] == 1
    assert machines.slurm.reasons["node1"].startswith("deploy: reboot: kernel: it does not answer: No route")


@pytest.mark.parametrize(
    ("most", "way", "options"),
    [
        (Share(1), Way(), []),
        (Share(2), Way(), ["--batch", "2"]),
        (Share(10, is_percent=True), Way(agrees=lambda: True), ["--batch", "10%", "--force"]),
    ],
)
def test_what_goes_on_is_the_command_as_it_was_typed(
    machines: Machines, tmp_path: Path, most: Share, way: Way, options: list[str]
) -> None:
    machines.refuses = {"node1": "Operation inhibited", "node2": "Operation inhibited"}
    inventory, why = write_site(tmp_path, SITE), """its 'new' kernel "6.12" at $HOME `id`"""
    with pytest.raises(StoppedError) as problem:
        module.reboot(inventory, "node[1-2]", why, Options(), most=most, way=way, say=print)
    words = shlex.split(problem.value.findings[0].hint.partition(", then: ")[2])
    assert words[:3] == ["deploy", "node", "reboot"]
    assert words[4:] == ["node[1-2]", "--reason", why, *options]


def test_a_machine_that_did_not_reboot_is_no_success(machines: Machines, tmp_path: Path) -> None:
    machines.ignores = {"node1"}
    assert stopped(tmp_path) == {"node1": "it did not reboot (after 20 min)"}


def test_a_machine_that_refuses_is_not_waited_for(machines: Machines, tmp_path: Path) -> None:
    machines.refuses = {"node1": "Operation inhibited"}
    assert stopped(tmp_path) == {"node1": "not rebooted: Operation inhibited"}


def test_a_node_that_does_not_answer_is_not_rebooted(machines: Machines, tmp_path: Path) -> None:
    machines.stays_off, machines.boots = {"node1"}, {"node1": 2, "node2": 1}
    assert stopped(tmp_path) == {"node1": "not rebooted: No route to host"}


def test_a_node_that_does_not_register_is_not_released(machines: Machines, tmp_path: Path) -> None:
    machines.is_registering = False
    assert stopped(tmp_path) == {"node1": "slurmd there has not registered with Slurm yet (after 20 min)"}


def test_a_health_check_has_time_to_become_well_and_no_more(machines: Machines, tmp_path: Path) -> None:
    machines.faults = {"node1": [["chrony does not run"]]}
    assert rebooted(tmp_path, "node1") == ["node1"]
    machines.faults = {"node1": [["one GPU is gone"]] * 100}
    assert stopped(tmp_path) == {"node1": "one GPU is gone (after 20 min)"}


@pytest.mark.parametrize(("nodes", "reference"), [("ctl1", "no-such-node"), ("node[1-3]", "no-such-node")])
def test_what_is_no_node_begins_nothing(
    machines: Machines, tmp_path: Path, nodes: str, reference: str
) -> None:
    with pytest.raises(DeployError, match=reference):
        rebooted(tmp_path, nodes)
    assert {*machines.slurm.reasons.values()} == {""}


def test_the_controller_and_this_machine_are_not_rebooted(machines: Machines, tmp_path: Path) -> None:
    inventory = write_site(
        tmp_path,
        "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-node]\nctl1\nhere ansible_connection=local\n",
    )
    for node in ("ctl1", "here"):
        with pytest.raises(DeployError, match="node-not-alone"):
            module.reboot(inventory, node, "kernel", Options(), most=Share(1), way=Way(), say=print)
    assert machines.boots == {"node1": 1, "node2": 1}

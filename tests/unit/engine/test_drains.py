"""``deploy node drain``, ``resume`` and ``list``, with a controller that answers as it is told."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from deploy.cli.node import node_app
from deploy.engine import drains
from deploy.engine.drains import Ledger, Node, Way
from deploy.engine.options import Options
from deploy.errors import DeployError, ExitCode
from deploy.run.ssh import Unanswered
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

SITE = "[slurm-master]\nctl1 ansible_host=10.0.0.1\n[slurm-node]\nnode1 ansible_host=10.0.0.2\n"
FOREIGN = {"node": "node1", "who": "root", "why": "node_health: x", "since": 1, "shown": "node_health: x"}
MINE = {"node": "node1", "who": "alice", "why": "disk", "since": 1, "shown": "deploy: disk (alice)"}


def _node(reason: str = "", *, by: str = "root") -> dict[str, Any]:
    states = ["IDLE", "DRAIN"] if reason else ["IDLE"]
    return {"states": states, "reason": reason, "by": by, "since": "", "partitions": ["all"], "started": ""}


class Controller:
    """Its answers in turn, and what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.whom: list[str] = []

    def ask(self, questions: Mapping[str, Any], *_: object, **__: object) -> dict[str, Any]:
        (name,) = questions
        self.asked.append(questions[name])
        self.whom.append(name)
        return {name: self.answers.pop(0)}


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Controller:
    made = Controller()
    monkeypatch.setattr(drains, "ask", made.ask)
    monkeypatch.setenv("SUDO_USER", "alice")
    return made


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return write_site(tmp_path, SITE)


def test_a_drain_names_jobs_and_what_was_there_before(controller: Controller, inventory: Path) -> None:
    controller.answers = [
        {
            "nodes": {"node1": _node("bad disk"), "node2": _node(str(MINE["shown"]))},
            "planned": [],
            "jobs": [["17", "bob", "node[1-2]"]],
            "held": [MINE, {**MINE, "node": "node2"}],
        }
    ]
    came = CliRunner().invoke(node_app, ["drain", str(inventory), "node[1-2]", "--reason", "disk"])
    assert came.exit_code == 0, came.output
    assert came.output.splitlines() == [
        "drained: node[1-2]",
        "node1: was drained before, and keeps that reason: bad disk (root, not by deploy node drain)",
        "node1: runs until they end: 17 (bob)",
        "node2: runs until they end: 17 (bob)",
    ]
    assert controller.asked == [("drain", {"names": ["node1", "node2"], "who": "alice", "why": "disk"})]


def test_what_slurm_has_not_saved_is_no_drain(controller: Controller, inventory: Path) -> None:
    controller.answers = [{"unsaved": "/srv/state"}]
    with pytest.raises(DeployError, match=r"has not saved it in /srv/state") as raised:
        drains.drain(inventory, "node1", "disk", Options(), way=Way(), say=print, waits=False)
    assert raised.value.exit_code is ExitCode.FAILED
    assert "df /srv/state (on ctl1)" in raised.value.findings[0].hint


def test_waiting_ends_with_the_last_job(
    controller: Controller, inventory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drains, "_POLL_SECONDS", 0)
    free = {"nodes": {"node1": _node(str(MINE["shown"]))}, "planned": [], "jobs": [], "held": [MINE]}
    controller.answers = [{**free, "jobs": [["17", "bob", "node1"]]}, free]
    told: list[str] = []
    (node,) = drains.drain(inventory, "node1", "disk", Options(), way=Way(), say=told.append, waits=True)
    assert (told, node.jobs) == (["waiting for 1 job on node1: 17 (bob)"], ())


def test_a_resume_says_what_still_holds(controller: Controller, inventory: Path) -> None:
    nodes = {"node1": _node("node_health: x"), "node2": _node("deploy: cabling (bob)"), "node3": _node()}
    bob = {"node": "node2", "who": "bob", "why": "cabling", "since": 1, "shown": "deploy: cabling (bob)"}
    released = [{key: value for key, value in MINE.items() if key != "shown"}]
    controller.answers = [
        {
            "nodes": nodes,
            "planned": [],
            "jobs": [],
            "held": [bob],
            "released": released,
            "resumed": ["node3"],
        },
    ]
    came = CliRunner().invoke(node_app, ["resume", str(inventory), "node[1-3]"])
    assert came.exit_code == ExitCode.FAILED, came.output
    assert came.output.splitlines() == [
        "in service: node3",
        "node1: your drain is released; it stays drained:",
        "  node_health: x (root, not by deploy node drain)",
        "node2: you hold no drain of it; it stays drained:",
        f"  cabling (bob)   -> deploy node resume {inventory} node2 --by bob",
    ]


def test_the_list_shows_all_that_holds_a_node(
    controller: Controller, inventory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deploy.cli.node.time.time", lambda: 7201.0)
    held = [{**FOREIGN, "is_foreign": True}, MINE]
    said = {
        "nodes": {"node1": _node(str(MINE["shown"])), "node2": _node()},
        "planned": [],
        "jobs": [],
        "held": held,
    }
    controller.answers = [said, said]
    assert CliRunner().invoke(node_app, ["list", str(inventory)]).output.splitlines() == [
        "node1  idle+drain  0 jobs",
        "         held: node_health: x (root, 2 h ago)",
        "         held: disk (alice, 2 h ago)",
        "node2  idle  0 jobs",
    ]
    shown = json.loads(CliRunner().invoke(node_app, ["list", str(inventory), "--json"]).output)
    assert [(each["who"], each["why"]) for each in shown[0]["drains"]] == [
        ("root", "node_health: x"),
        ("alice", "disk"),
    ]


@pytest.mark.parametrize(
    ("states", "takes_jobs"),
    [(("IDLE", "PLANNED"), True), (("IDLE", "MAINTENANCE"), False), (("IDLE", "DRAIN"), False)],
)
def test_a_node_in_maintenance_is_out_of_service(states: tuple[str, ...], *, takes_jobs: bool) -> None:
    """Slurm calls the flag MAINT of a reservation MAINTENANCE as a node's state."""
    assert Node("node1", states, "", "", (), ()).is_in_service == takes_jobs


@pytest.mark.parametrize(
    ("nodes", "why", "where"),
    [
        ("node[1-", "disk", "NODES"),
        ("", "disk", "NODES"),
        ("node1", "", "--reason"),
        ("node1", "two\nlines", "--reason"),
        ("node1", "x" * 201, "--reason"),
    ],
)
def test_what_is_no_node_set_and_no_reason_is_refused(
    controller: Controller, inventory: Path, nodes: str, why: str, where: str
) -> None:
    with pytest.raises(DeployError) as refused:
        drains.drain(inventory, nodes, why, Options(), way=Way(), say=print, waits=False)
    assert (refused.value.findings[0].where, refused.value.exit_code) == (where, ExitCode.BAD_INPUT)
    assert controller.asked == []


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        (Unanswered("no route to host"), "controller-silent"),
        ({"trouble": "scontrol: Unable to contact slurm controller"}, "controller-silent"),
        ({"unknown": ["node9"]}, "node-not-known-to-slurm"),
    ],
)
def test_why_nothing_was_drained_is_said(
    controller: Controller, inventory: Path, answer: object, reference: str
) -> None:
    controller.answers = [answer]
    with pytest.raises(DeployError) as refused:
        drains.drain(inventory, "node9", "disk", Options(), way=Way(), say=print, waits=False)
    assert refused.value.findings[0].reference == reference


@pytest.fixture
def two(controller: Controller, tmp_path: Path) -> Ledger:
    assert controller
    site = SITE.replace("[slurm-node]", "ctl2 ansible_host=10.0.0.3\n[slurm-node]")
    return Ledger(read_site(write_site(tmp_path, site)), Options())


FREE = {"nodes": {"node1": _node()}, "planned": [], "jobs": [], "held": []}


@pytest.mark.parametrize("why", [Unanswered("no route to host"), {"trouble": "it has no ledger of drains"}])
def test_the_next_controller_is_asked_where_one_has_no_answer(
    controller: Controller, two: Ledger, why: object
) -> None:
    controller.answers = [why, FREE, FREE]
    assert [node.name for node in two.nodes()] == ["node1"]
    assert [node.name for node in two.nodes()] == ["node1"]
    # Who is away is not waited for again.
    assert controller.whom == ["ctl1", "ctl2", "ctl2"]


def test_all_that_are_silent_are_named(controller: Controller, two: Ledger) -> None:
    controller.answers = [Unanswered("no route to host"), {"trouble": "not mounted"}]
    with pytest.raises(DeployError) as refused:
        two.nodes()
    (finding,) = refused.value.findings
    assert (finding.reference, finding.where) == ("controller-silent", "ctl1")
    assert "does not answer: no route to host; nor does ctl2: not mounted" in finding.message


def test_what_twice_would_be_another_thing_is_asked_of_one(controller: Controller, two: Ledger) -> None:
    controller.answers = [Unanswered("no answer within 60 s")]
    with pytest.raises(DeployError, match="no answer"), two.lent(["node1"], "repair", "tester"):
        pass
    assert controller.whom == ["ctl1"]


@pytest.mark.parametrize(
    "options",
    [("--within", "2h", "--when-idle"), ("--within", "2h", "--force"), ("--yes",), ("--within", "soon")],
)
def test_ways_that_contradict_each_other_are_refused(
    controller: Controller, inventory: Path, options: tuple[str, ...]
) -> None:
    words = ["drain", str(inventory), "node1", "--reason", "disk", *options]
    came = CliRunner().invoke(node_app, words)
    assert isinstance(came.exception, DeployError)
    assert (came.exception.findings[0].reference, controller.asked) == ("invalid-option", [])


@pytest.mark.parametrize(("text", "expected"), [("90m", 5400), ("2h", 7200), ("1d", 86400)])
def test_a_time_from_now(text: str, expected: int) -> None:
    assert drains.seconds(text) == expected


@pytest.mark.parametrize(
    "options", [["--within", "90m"], ["--within", "14d"], ["--when-idle"], ["--force"], []]
)
def test_the_way_of_a_drain_is_typed_again_as_it_was(options: list[str]) -> None:
    within = drains.seconds(options[1]) if "--within" in options else None
    agrees = (lambda: True) if "--force" in options else None
    assert [*Way(within, is_when_idle="--when-idle" in options, agrees=agrees).options] == options


def _busy(reason: str = "") -> dict[str, Any]:
    return {"nodes": {"node1": _node(reason)}, "planned": [], "jobs": [["17", "bob", "node1"]], "held": []}


def test_jobs_are_named_before_they_are_lost_and_nothing_is_done_without_a_yes(
    controller: Controller, inventory: Path
) -> None:
    controller.answers = [_busy()]
    said: list[str] = []
    way = Way(agrees=lambda: False)
    with pytest.raises(DeployError) as refused:
        drains.drain(inventory, "node1", "disk", Options(), way=way, say=said.append, waits=False)
    assert (refused.value.findings[0].reference, refused.value.exit_code) == (
        "would-lose-jobs",
        ExitCode.CHANGES_PENDING,
    )
    assert said == ["would be requeued, or cancelled where that cannot be: 17 (bob)"]
    assert [verb for verb, _ in controller.asked] == ["listed"]


def test_jobs_that_may_be_lost_are_ended_by_number(controller: Controller, inventory: Path) -> None:
    drained, ended = _busy("deploy: disk (alice)"), {"requeued": ["17"], "cancelled": []}
    controller.answers = [_busy(), drained, ended, {**drained, "jobs": []}]
    said: list[str] = []
    way = Way(agrees=lambda: True)
    (node,) = drains.drain(inventory, "node1", "disk", Options(), way=way, say=said.append, waits=False)
    assert (node.jobs, said[-1]) == ((), "requeued: 17")
    assert controller.asked[2] == ("end", {"names": ["node1"], "jobs": ["17"]})


def _planned(left: int, jobs: list[list[str]]) -> dict[str, Any]:
    plan = {"name": "deploy_1", "who": "alice", "why": "disk", "nodes": ["node1"], "start": 1, "left": left}
    return {"nodes": {"node1": _node()}, "planned": [plan], "jobs": jobs, "held": []}


@pytest.mark.parametrize(
    ("way", "last"),
    [
        (Way(within=60), _planned(-1, [])),
        (Way(is_when_idle=True), _planned(60, [])),
    ],
)
def test_a_drain_takes_over_when_its_time_has_come_or_the_node_is_idle(
    controller: Controller, inventory: Path, monkeypatch: pytest.MonkeyPatch, way: Way, last: dict[str, Any]
) -> None:
    monkeypatch.setattr(drains, "_POLL_SECONDS", 0)
    jobs = [["17", "bob", "node1"]]
    drained = {**_planned(0, []), "planned": [], "nodes": {"node1": _node("deploy: disk (alice)")}}
    controller.answers = [_planned(60, jobs), _planned(60, jobs), last, drained]
    drains.drain(inventory, "node1", "disk", Options(), way=way, say=print, waits=True)
    assert [verb for verb, _ in controller.asked] == ["plan", "listed", "listed", "drain"]


def test_a_reservation_that_somebody_released_drains_nothing(
    controller: Controller, inventory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drains, "_POLL_SECONDS", 0)
    controller.answers = [_planned(60, []), {**_planned(60, []), "planned": []}]
    with pytest.raises(DeployError, match="reservation-gone"):
        drains.drain(inventory, "node1", "disk", Options(), way=Way(within=60), say=print, waits=True)


def test_a_job_without_an_end_cannot_be_planned_around(controller: Controller, inventory: Path) -> None:
    controller.answers = [{**_busy(), "endless": True}]
    with pytest.raises(DeployError, match="job-without-end"):
        drains.drain(inventory, "node1", "x", Options(), way=Way(is_when_idle=True), say=print, waits=False)

"""Which records are written, on which hosts, and when."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import records
from deploy.engine.options import Options
from deploy.engine.recording import Recording, Written
from deploy.engine.records import Records
from deploy.judge.summary import summarize
from deploy.plan.build import Plan, Step
from deploy.plan.catalog import PHASES
from deploy.run.events import Event, Status
from deploy.run.ssh import Unanswered
from deploy.show.text import unfinished_lines
from deploy.site.inventory import Site
from tests.unit.show.runs import ended, phase_ended, result

_BOTH = ("ctl1", "node1")
_PLAN = Plan(tuple(Step(phase, _BOTH) for phase in PHASES[:2]))
_FIRST, _SECOND = (step.phase.name for step in _PLAN.steps)
_ENDS: list[Event] = [phase_ended(step.phase.name, *_BOTH) for step in _PLAN.steps]


class Hosts:
    """Hosts that are asked to keep records, and what they are expected to have of two phases."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, silent: str = "") -> None:
        self.silent = silent
        self.told: dict[str, set[str]] = {}
        self.only: dict[str, list[str]] = {}
        self.pending: dict[str, dict[str, list[str]]] = {}
        self.managed: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, list[dict[str, Any]]] = {}
        self.expected = {name: {_FIRST: "1", _SECOND: "2"} for name in _BOTH}
        monkeypatch.setattr(records, "ask", self.ask)
        monkeypatch.setattr(Records, "expected", lambda *_: self.expected)

    def ask(self, questions: Mapping[str, Any], *_: object) -> dict[str, Any]:
        assert not self.told.keys() & questions.keys(), "a host is told once"
        self.told |= {name: set(content["phases"]) for name, (_, content) in questions.items()}
        self.only = {name: content["only"] for name, (_, content) in questions.items()}
        self.pending |= {name: content["pending"] for name, (_, content) in questions.items()}
        for name, (_, content) in questions.items():
            of_phases = {phase: told["managed"] for phase, told in content["phases"].items()}
            self.managed.setdefault(name, {}).update(of_phases)
        answers = {name: {"left": [], "differing": self.answers.get(name, [])} for name in questions}
        return answers | {name: Unanswered("gone") for name in questions if name == self.silent}

    @contextmanager
    def recording(
        self,
        plan: Plan = _PLAN,
        known: Mapping[str, str] | None = None,
        held: Mapping[str, frozenset[str]] | None = None,
    ) -> Iterator[Recording]:
        self.told = {}
        site = Records(Site(Path("inventory.ini"), {}, {}), Options())
        with Recording.of(site, {}, plan, held=held or {}, known=known or {}) as recording:
            yield recording

    def write(
        self,
        known: Mapping[str, str] | None = None,
        plan: Plan = _PLAN,
        held: Mapping[str, frozenset[str]] | None = None,
    ) -> Written:
        with self.recording(plan, known, held) as recording:
            return recording.finish([phase_ended(step.phase.name, *_BOTH) for step in plan.steps], _BOTH)


def test_records_are_written_where_they_would_be_others(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch)
    first = hosts.write()
    assert hosts.told == {"ctl1": {_FIRST, _SECOND}, "node1": {_FIRST, _SECOND}}
    assert first.digests.keys() == {"ctl1", "node1"}
    assert hosts.write(first.digests) == Written((), {})
    assert hosts.told == {}
    hosts.expected["node1"][_SECOND] = "3"
    second = hosts.write(first.digests)
    assert hosts.told.keys() == second.digests.keys() == {"node1"}
    assert second.digests["node1"] != first.digests["node1"]


def test_only_a_host_that_has_all_its_records_has_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch, silent="node1")
    written = hosts.write()
    assert [notice.text for notice in written.notices] == [
        "node1: what was converged could not be recorded: gone"
    ]
    assert written.digests.keys() == {"ctl1"}
    part = Plan(_PLAN.steps[:1])
    assert hosts.write({}, part).digests == {}
    assert hosts.write({}, part, {"ctl1": frozenset({_SECOND})}).digests == written.digests


def test_a_host_is_recorded_as_soon_as_nothing_more_happens_there(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch)
    plan = Plan((Step(PHASES[0], ("ctl1", "node1")), Step(PHASES[1], ("ctl1",))))
    with hosts.recording(plan) as recording:
        recording.go_on([phase_ended("check", *_BOTH)])
    assert hosts.told == {}
    with hosts.recording(plan) as recording:
        recording.go_on(_ENDS[:1])
    assert hosts.told == {"node1": {_FIRST}}
    with hosts.recording(plan) as recording:
        recording.go_on(_ENDS[:1])
        written = recording.finish(_ENDS, _BOTH)
    assert hosts.told == {"node1": {_FIRST}, "ctl1": {_FIRST, _SECOND}}
    assert written.digests.keys() == {"ctl1"}


@pytest.mark.parametrize("status", [Status.FAILED, Status.UNREACHABLE])
def test_only_a_phase_whose_last_task_ended_is_recorded(
    monkeypatch: pytest.MonkeyPatch, status: Status
) -> None:
    hosts = Hosts(monkeypatch)
    # As with max_fail_percentage: node1 fails, ctl1 is taken out with it, and no result says so.
    events = [_ENDS[0], result("ctl1"), result("node1", status), phase_ended(_SECOND)]
    with hosts.recording() as recording:
        for number in range(len(events)):
            recording.go_on(events[: number + 1])
        written = recording.finish(events, _BOTH)
    assert hosts.told == {"ctl1": {_FIRST}, "node1": {_FIRST}}
    assert written.digests == {}


def test_a_phase_that_left_something_to_a_later_run_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch)
    pending = replace(result("node1"), phase=_FIRST, pending=("a mount: after a reboot",))
    with hosts.recording() as recording:
        recording.finish([pending, *_ENDS], _BOTH)
    assert hosts.told == {"ctl1": {_FIRST, _SECOND}, "node1": {_SECOND}}
    assert hosts.pending == {"ctl1": {}, "node1": {_FIRST: ["a mount: after a reboot"]}}
    summary = summarize([pending, ended()], _BOTH)
    assert not summary.hosts["node1"].is_good
    assert unfinished_lines(summary) == ["pending  node1: a mount: after a reboot"]


def test_a_host_that_does_not_answer_is_not_asked_to_record(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch)
    with hosts.recording() as recording:
        recording.finish(_ENDS[:1], ["ctl1"])
    assert hosts.told == {"ctl1": {_FIRST}}


def test_a_record_of_another_time_goes_where_something_is_left_to_a_later_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts = Hosts(monkeypatch)
    digests = hosts.write().digests
    undone = replace(result("node1"), phase=_SECOND, pending=("ssh keys of alice: /home: gone",))
    with hosts.recording(known=digests) as recording:
        written = recording.finish([*_ENDS, undone], _BOTH)
    assert hosts.told == {"node1": {_FIRST}}
    assert hosts.only == {"node1": [_FIRST]}, "a record of another time is taken away"
    assert written.digests == {}


def test_a_record_has_the_state_that_the_last_task_left(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch)
    wrote: Any = {"files": {"/x": {"type": "file", "content": "sha1:a"}, "/y": {"mode": "0600"}}}
    edited: Any = {"files": {"/x": {"content": None}}, "services": {"s": {"runs": True}}}
    events: list[Event] = [
        replace(result("ctl1", phase=_FIRST), manages=wrote),
        phase_ended(_FIRST, *_BOTH),
        replace(result("ctl1", phase=_SECOND), manages=edited),
        phase_ended(_SECOND, *_BOTH),
    ]
    with hosts.recording() as recording:
        recording.finish(events, _BOTH)
    x = {"type": "file", "content": None}
    assert hosts.managed["ctl1"][_FIRST]["files"]["/x"] == x
    assert hosts.managed["ctl1"][_FIRST]["files"]["/y"] == {"mode": "0600"}
    assert hosts.managed["ctl1"][_SECOND] == {"files": {"/x": x}, "services": {"s": {"runs": True}}}


def test_the_files_of_hidden_tasks_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch)
    proxy = next(phase for phase in PHASES if phase.name == "proxy")
    plan = Plan((Step(proxy, ("ctl1",)),))
    with hosts.recording(plan) as recording:
        recording.finish([phase_ended("proxy", "ctl1")], ["ctl1"])
    assert "/etc/apt/apt.conf.d/05deploy-proxy" in hosts.managed["ctl1"]["proxy"]["files"]


def test_what_others_did_meanwhile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch)
    edit = {"kind": "files", "name": "/x", "recorded": {"content": "a"}, "found": {"content": "b"}}
    silent = {"kind": "probe", "name": "limits", "recorded": "failed", "found": "failed"}
    line = "/etc/hosts:1 gives node1 the address 10.0.0.9"
    objection = {"kind": "objection", "name": line, "recorded": None, "found": True}
    hosts.answers = {"node1": [edit, silent, edit, objection]}
    assert [notice.text for notice in hosts.write().notices] == [
        "node1: /x differs (changed by others during this run): the next run looks again",
        "node1: limits cannot be asked (so its phase has no end): the next run looks again",
        f"node1: {line}",
    ]

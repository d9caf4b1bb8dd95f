"""Which records are taken off hosts before their phases are worked on, and which are written after it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.cli import records
from deploy.cli.options import Options
from deploy.cli.records import Records, Written
from deploy.plan.build import Plan, Step
from deploy.plan.catalog import PHASES
from deploy.run.events import HostStats
from deploy.run.ssh import Unanswered
from deploy.show.summary import summarize
from deploy.site.inventory import Site
from tests.unit.show.runs import ended, play, stats

_PLAN = Plan(tuple(Step(phase, ("ctl1", "node1")) for phase in PHASES[:2]))
_FIRST, _SECOND = (step.phase.name for step in _PLAN.steps)


@pytest.mark.parametrize(
    ("unrecorded", "forgotten"),
    [
        ({}, {"ctl1": [_FIRST, _SECOND], "node1": [_FIRST, _SECOND]}),
        ({"node1": (_FIRST,)}, {"ctl1": [_FIRST, _SECOND], "node1": [_SECOND]}),
        ({"node1": (_FIRST, _SECOND), "ctl1": (_SECOND, "other")}, {"ctl1": [_FIRST]}),
    ],
)
def test_only_what_may_be_recorded_is_forgotten(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unrecorded: Mapping[str, tuple[str, ...]],
    forgotten: Mapping[str, list[str]],
) -> None:
    asked: dict[str, Any] = {}

    def ask(questions: Mapping[str, Any], *_: object) -> dict[str, Any]:
        asked.update(questions)
        return {}

    monkeypatch.setattr(records, "ask", ask)
    Records(Site(tmp_path / "inventory.ini", {}, {}), Options()).forget(_PLAN, unrecorded)
    assert asked == {name: ("forget", {"phases": phases}) for name, phases in forgotten.items()}


class Hosts:
    """Hosts that are asked to keep records, and what they are expected to have of two phases."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, silent: str = "") -> None:
        self.silent = silent
        self.told: dict[str, set[str]] = {}
        self.expected = {name: {_FIRST: "1", _SECOND: "2"} for name in ("ctl1", "node1")}
        monkeypatch.setattr(records, "ask", self.ask)
        monkeypatch.setattr(Records, "_expected", lambda *_: self.expected)

    def ask(self, questions: Mapping[str, Any], *_: object) -> dict[str, Any]:
        self.told = {name: set(content["phases"]) for name, (_, content) in questions.items()}
        return {name: Unanswered("gone") if name == self.silent else None for name in questions}

    def write(
        self,
        known: Mapping[str, str],
        plan: Plan = _PLAN,
        held: Mapping[str, frozenset[str]] | None = None,
    ) -> Written:
        titles = [play(step.phase.title) for step in plan.steps]
        summary = summarize(
            [*titles, stats(ctl1=HostStats(ok=1), node1=HostStats(ok=1)), ended()], ["ctl1", "node1"]
        )
        site = Site(Path("inventory.ini"), {}, {})
        return Records(site, Options()).write({}, plan, titles, summary, held=held or {}, known=known)


def test_records_are_written_where_they_would_be_others(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch)
    first = hosts.write({})
    assert hosts.told == {"ctl1": {_FIRST, _SECOND}, "node1": {_FIRST, _SECOND}}
    assert first.digests.keys() == {"ctl1", "node1"}
    assert hosts.write(first.digests) == Written([], {})
    assert hosts.told == {}
    hosts.expected["node1"][_SECOND] = "3"
    second = hosts.write(first.digests)
    assert hosts.told.keys() == second.digests.keys() == {"node1"}
    assert second.digests["node1"] != first.digests["node1"]


def test_only_a_host_that_has_all_its_records_has_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Hosts(monkeypatch, silent="node1")
    written = hosts.write({})
    assert [notice.text for notice in written.notices] == [
        "node1: what was converged could not be recorded: gone"
    ]
    assert written.digests.keys() == {"ctl1"}
    part = Plan(_PLAN.steps[:1])
    assert hosts.write({}, part).digests == {}
    assert hosts.write({}, part, {"ctl1": frozenset({_SECOND})}).digests == written.digests

"""Which records are taken off hosts before their phases are worked on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.engine import records
from deploy.engine.options import Options
from deploy.engine.records import Records
from deploy.plan.build import Plan, Step
from deploy.plan.catalog import PHASES
from deploy.site.inventory import Site

_WORK, _LISTS = (
    [Step(phase, ("ctl1", "node1")) for phase in PHASES if phase.follows_membership is follows_membership]
    for follows_membership in (False, True)
)
_PLAN = Plan((*_WORK[:2], _LISTS[0]))
_FIRST, _SECOND, _ = (step.phase.name for step in _PLAN.steps)


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

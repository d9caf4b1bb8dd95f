"""What `deploy cluster` and `deploy plan` make of an Ansible that broke while it looked."""

from concurrent.futures import Future
from pathlib import Path

import pytest

from deploy.engine import consent
from deploy.engine.preview import Preview
from deploy.engine.story import Story
from deploy.engine.verify import Looked
from deploy.engine.work import Work
from deploy.errors import ExitCode
from deploy.judge.forecast import forecast_of
from deploy.judge.foretold import Foretold
from deploy.judge.summary import as_preview, summarize
from deploy.plan.build import Plan
from deploy.run.events import Event, HostStats, Status
from deploy.show.foretold import foretold_lines
from deploy.show.plain import PlainDisplay
from deploy.site.inventory import Site
from tests.unit.engine.machines import run_on
from tests.unit.show.runs import ended, result, stats

BROKE: list[Event] = [result("node1", Status.CHANGED), ended(rc=1)]


def never() -> bool:
    """Nobody may be asked."""
    raise AssertionError


def looked(
    place: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[Event, ...], list[str]]:
    """What ``deploy cluster`` takes for its whole run after such a look, and what it said."""
    story = Story()
    story.keep(*events)
    monkeypatch.setattr(consent, "preview", lambda *_: Preview(forecast_of(events), story))
    run = run_on(Site(place / "inventory.ini", {}, {}), place=place)
    said: list[str] = []
    work = Work(Plan(()), {}, place, {}, {}, Looked({}, {}, Future()))
    return consent.permission(run, work, PlainDisplay(said.append), never).passed, said


def test_nothing_is_run_after_a_look_that_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed, said = looked(tmp_path, BROKE, monkeypatch)
    assert passed == tuple(as_preview(BROKE))
    assert not any("plan:" in line for line in said)


def test_after_a_look_that_came_to_its_end_the_run_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [BROKE[0], stats(node1=HostStats(ok=1, changed=1)), ended()]
    passed, said = looked(tmp_path, events, monkeypatch)
    assert passed == ()
    assert any(line.startswith("plan: 1 change on node1") for line in said)


def test_a_plan_that_broke_is_not_called_known() -> None:
    foretold = Foretold(forecast_of(BROKE[1:]), summarize(BROKE[1:], ["node1"]))
    assert foretold_lines(foretold)[-1] == "plan: not known, because Ansible broke"
    assert foretold.exit_code == ExitCode.BAD_INPUT

"""What `deploy cluster` and `deploy plan` make of an Ansible that broke while it looked."""

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from deploy.cli.converge import ClusterRun, Looked, Work
from deploy.cli.options import Options
from deploy.errors import ExitCode
from deploy.judge.forecast import Forecast, forecast_of
from deploy.judge.foretold import Foretold
from deploy.judge.summary import summarize
from deploy.plan.build import Plan
from deploy.run.cancellation import Cancellation
from deploy.run.events import Event, HostStats, Status
from deploy.run.execute import EarlyStart
from deploy.show.foretold import foretold_lines
from deploy.show.plain import PlainDisplay
from deploy.site.inventory import Site
from tests.unit.show.runs import ended, result, stats

BROKE: list[Event] = [result("node1", Status.CHANGED), ended(rc=1)]


def never(forecast: Forecast, command: str) -> None:
    """Nobody may be asked."""
    raise AssertionError(command, forecast)


def looked(
    place: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Event], list[str]]:
    """What ``deploy cluster`` takes for its whole run after such a look, and what it said."""

    def foretell(*_: Any) -> tuple[Forecast, list[Event]]:  # noqa: ANN401 - whatever it is told
        return forecast_of(events), events

    monkeypatch.setattr(ClusterRun, "_foretell", foretell)
    monkeypatch.setattr(ClusterRun, "_borrowed_secrets", lambda _: ())
    site = Site(place / "inventory.ini", {}, {})
    run = ClusterRun(site, Options(), place, None, EarlyStart({}, site.inventory))
    said: list[str] = []
    work = Work(Plan(()), {}, place, {}, {}, {}, {}, Looked({}, {}, Future()))
    passed, _ = run._plan_first(work, PlainDisplay(said.append), never, Cancellation())
    return passed, said


def test_nothing_is_run_after_a_look_that_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed, said = looked(tmp_path, BROKE, monkeypatch)
    assert passed == BROKE
    assert not any("plan:" in line for line in said)


def test_after_a_look_that_came_to_its_end_the_run_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [BROKE[0], stats(node1=HostStats(ok=1, changed=1)), ended()]
    passed, said = looked(tmp_path, events, monkeypatch)
    assert passed == []
    assert any(line.startswith("plan: 1 change on node1") for line in said)


def test_a_plan_that_broke_is_not_called_known() -> None:
    foretold = Foretold(forecast_of(BROKE[1:]), summarize(BROKE[1:], ["node1"]))
    assert foretold_lines(foretold)[-1] == "plan: not known, because Ansible broke"
    assert foretold.exit_code == ExitCode.BAD_INPUT

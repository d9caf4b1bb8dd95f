import io
import json
from collections.abc import Callable

import pytest
from rich.console import Console

from deploy.engine.display import Display
from deploy.judge.summary import summarize
from deploy.run.diffs import Diff
from deploy.run.events import Event, HostResult, HostVerified, Level, Notice, Retry, Status, from_json
from deploy.show.jsonl import JsonlDisplay
from deploy.show.live import LiveDisplay
from deploy.show.plain import PlainDisplay
from tests.unit.show.runs import START, WITH_FAILURE, ended, result, task

HOSTS = ("node1", "node2")
HOSTILE = "[red]<b>[/] $(id) \u00fc"


def _show(display: Display, events: list[Event]) -> None:
    display.start("deploy cluster inv.ini", HOSTS)
    for event in events:
        display.event(event)
    display.finish(summarize(events, HOSTS, started=START), "deploy report inv.ini")
    display.close()


def _plain(events: list[Event], *, verbose: bool = False, diff: bool = False) -> list[str]:
    lines: list[str] = []
    _show(PlainDisplay(lines.append, verbose=verbose, diff=diff), events)
    return lines


def _live(events: list[Event], *, verbose: bool = False, diff: bool = False, height: int = 40) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=height, color_system=None)
    _show(LiveDisplay(console, verbose=verbose, diff=diff), events)
    return out.getvalue()


def _rendered(display: LiveDisplay, height: int) -> str:
    console = Console(file=io.StringIO(), width=100, height=height)
    with console.capture() as captured:
        console.print(display._render())
    return captured.get()


def test_plain_lines() -> None:
    assert _plain(WITH_FAILURE) == [
        "deploy cluster inv.ini: 2 hosts",
        "== Base",
        "changed  node1: munge : Install",
        "FAILED node2: munge : Install",
        "    first",
        "    second",
        "    at x.yml:3",
        "== Compute",
        "",
        "node1  ok=1 changed=1 failed=0 unreachable=0 skipped=1 seconds=1.1",
        "node2  ok=0 changed=0 failed=1 unreachable=0 skipped=0 seconds=2.0",
        "",
        "failed: what succeeded stays, and running again is safe (1 change, 10.0 s)",
        "next: deploy report inv.ini",
    ]


def test_verbose_adds_what_went_well_and_waiting() -> None:
    events: list[Event] = [
        result("node1", message="ready"),
        Retry(START, "node1", "r", "Wait", 1, 5),
        Notice(START, Level.OUTPUT, "said"),
    ]
    assert not set(_plain(events)) & {"ok       node1: munge : Install", "    ready", "said"}
    assert _plain(events, verbose=True)[1:5] == [
        "ok       node1: munge : Install",
        "    ready",
        "waiting  node1: r : Wait (attempt 1 of 5)",
        "said",
    ]


def test_warnings_and_errors_are_always_shown() -> None:
    lines = _plain([Notice(START, Level.WARNING, "care"), Notice(START, Level.DEPRECATED, "old")])
    assert "care" in lines
    assert "old" not in lines


@pytest.mark.parametrize("show", [_live, lambda events: "\n".join(_plain(events))])
def test_drift_is_named(show: Callable[..., str]) -> None:
    events: list[Event] = [HostVerified(START, "node1", (), ("/etc/munge/munge.key is gone",))]
    assert "drift    node1: /etc/munge/munge.key is gone" in show(events)


def test_handled_failures_are_told_without_alarm() -> None:
    rescued = HostResult(START, "node1", "", "", "t", "", Status.FAILED, 0.0, "why", rescued=True)
    assert _plain([rescued])[1] == "rescued  node1: t"


@pytest.mark.parametrize("show", [lambda events, **how: "\n".join(_plain(events, **how)), _live])
def test_differences_on_demand(show: Callable[..., str]) -> None:
    changed = HostResult(
        START,
        "node1",
        "",
        "",
        "t",
        "",
        Status.CHANGED,
        0.0,
        diff=(Diff("a\n", "b\n", "old.conf", "new.conf"),),
    )
    for line in ("--- old.conf", "+++ new.conf", "-a", "+b"):
        assert line in show([changed], diff=True)
        assert line not in show([changed])


@pytest.mark.parametrize("show", [lambda events: "\n".join(_plain(events)), _live])
def test_what_ansible_said_when_it_broke(show: Callable[..., str]) -> None:
    shown = show([Notice(START, Level.OUTPUT, "ERROR! no such file"), ended(rc=1)])
    assert "ERROR! no such file" in shown
    assert shown.count("unknown") >= 2


@pytest.mark.parametrize("show", [lambda events: "\n".join(_plain(events)), _live])
def test_hostile_text_is_shown_as_it_is(show: Callable[..., str]) -> None:
    shown = show([task(HOSTILE), result("node1", Status.FAILED, task=HOSTILE, message=HOSTILE)])
    assert f"FAILED node1: munge : {HOSTILE}" in shown
    assert f"    {HOSTILE}" in shown


def test_the_live_view_ends_with_figures_outcome_and_next_command() -> None:
    shown = _live(WITH_FAILURE)
    assert "FAILED node2: munge : Install" in shown
    end = shown[shown.rindex("host ") :]
    assert "node1   1        1        1       -      1.1" in end
    assert "failed: what succeeded stays" in end
    assert "next: deploy report inv.ini" in end


def test_the_live_view_shows_phase_task_and_last_results() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=40, color_system=None)
    display = LiveDisplay(console)
    display.start("title", HOSTS)
    for event in WITH_FAILURE[:4]:
        display.event(event)
    display.close()
    shown = _rendered(display, console.height)
    for part in ("title", "Base", "munge : Install", "2 hosts done", "changed munge : Install"):
        assert part in shown


def test_more_hosts_than_lines_show_the_bad_ones_first() -> None:
    hosts = tuple(f"node{number:03}" for number in range(100))
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=24, color_system=None)
    display = LiveDisplay(console)
    display.start("title", hosts)
    display.event(result("node077", Status.FAILED))
    display.event(result("node042"))
    display.close()
    shown = _rendered(display, console.height)
    lines = shown.splitlines()
    assert len(lines) <= 24
    names = [line.split()[0] for line in lines if line.startswith("node")]
    assert names[:2] == ["node077", "node042"]
    assert f"{100 - len(names)} more" in shown


def test_json_lines_hold_the_events_and_the_summary() -> None:
    lines: list[str] = []
    _show(JsonlDisplay(lines.append), WITH_FAILURE)
    first, *middle, last = lines
    assert json.loads(first) == {
        "event": "run_started",
        "title": "deploy cluster inv.ini",
        "hosts": list(HOSTS),
    }
    assert [from_json(line) for line in middle] == WITH_FAILURE
    assert json.loads(last)["event"] == "summary"
    assert json.loads(last)["outcome"] == "failed"
    assert json.loads(last)["hosts"]["node2"]["failed"] == 1

"""What whoever is not asked, or says no, is told; and what a run has done that ends in its preview."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.engine import consent
from deploy.engine.consent import _refusal, permission
from deploy.engine.converge import _unproven
from deploy.engine.options import Options
from deploy.engine.preview import Previewed
from deploy.engine.story import Story
from deploy.errors import ExitCode
from deploy.judge.preview import preview_of
from deploy.judge.summary import summarize
from deploy.run.events import HostStats, Status
from deploy.show.plain import PlainDisplay
from tests.unit.judge.test_preview import RUNNING, asked, changed, loss
from tests.unit.show.runs import ended, result, stats

_RESTART = changed("ctl1", kind="restart", guarded=[loss()])
_COMMAND = "deploy cluster inventory.ini"


def _work(*hosts: str, fresh: str = "") -> Any:  # noqa: ANN401 - what of it is asked
    work = SimpleNamespace(plan=SimpleNamespace(hosts=hosts), fresh=frozenset(fresh.split()))
    work.without_fresh = lambda _: work
    return work


def test_the_jobs_are_named() -> None:
    refusal = _refusal(preview_of([asked(RUNNING), _RESTART]), _COMMAND)
    assert refusal.exit_code is ExitCode.CHANGES_PENDING
    assert "job 7 of alice" in str(refusal)
    assert f"{_COMMAND} --yes" in str(refusal)


def test_a_queue_that_does_not_answer_is_said() -> None:
    refusal = _refusal(preview_of([asked(answers=False), _RESTART]), _COMMAND)
    assert "Slurm does not answer" in str(refusal)


@pytest.mark.parametrize(
    ("unproven", "is_the_run"),
    [(set(), True), ({"node1"}, False), ({"node2"}, True), ({"elsewhere"}, True)],
)
def test_a_preview_without_a_change_is_the_run_but_where_the_last_one_failed(
    monkeypatch: pytest.MonkeyPatch, unproven: set[str], *, is_the_run: bool
) -> None:
    story, shown = Story(), list[str]()
    story.keep(
        result("node1", Status.OK),
        result("node2", Status.UNREACHABLE),
        stats(node1=HostStats(ok=1), node2=HostStats(unreachable=1)),
        ended(rc=4),
    )
    monkeypatch.setattr(consent, "previewed", lambda *_: Previewed(preview_of(story.events), story))
    run: Any = SimpleNamespace(options=Options(), cancellation=SimpleNamespace(is_asked=False))
    work = _work("node1", "node2")
    display = PlainDisplay(shown.append)
    given = permission(run, work, display, lambda: False, unproven)
    assert bool(given.passed) is is_the_run
    assert "plan:" not in "".join(shown)


@pytest.mark.parametrize("typed", [True, False])
def test_yes_goes_for_what_the_role_finds_and_the_preview_did_not(
    monkeypatch: pytest.MonkeyPatch, *, typed: bool
) -> None:
    story = Story()
    story.keep(result("node1", Status.CHANGED), stats(node1=HostStats(ok=1, changed=1)), ended(rc=0))
    monkeypatch.setattr(consent, "previewed", lambda *_: Previewed(preview_of(story.events), story))
    options = Options(may_lose_jobs=typed)
    run: Any = SimpleNamespace(options=options, cancellation=SimpleNamespace(is_asked=False))
    given = permission(run, _work("node1"), PlainDisplay(lambda _: None), lambda: False)
    assert any("slurmctld_may_lose_jobs" in text for text in given.options.extra) is typed


def test_a_run_that_ends_in_its_preview_has_changed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    story, shown, hosts = Story(), list[str](), ("node1", "node2")
    story.keep(
        result("node1", Status.CHANGED),
        result("node2", Status.FAILED, message="Missing sudo password"),
        stats(node1=HostStats(ok=1, changed=1), node2=HostStats(failed=1)),
        ended(rc=2),
    )
    monkeypatch.setattr(consent, "previewed", lambda *_: Previewed(preview_of(story.events), story))
    run: Any = SimpleNamespace(options=Options(), cancellation=SimpleNamespace(is_asked=False))
    work = _work(*hosts)
    given = permission(run, work, PlainDisplay(shown.append), lambda: False)
    assert "sudo-password-needed" in "".join(shown)
    assert (summarize(given.passed, hosts).changed, summarize(story.events, hosts).changed) == (0, 1)


def test_hosts_on_which_the_last_run_failed_or_was_cut_off_are_unproven(tmp_path: Path) -> None:
    run: Any = SimpleNamespace(site=SimpleNamespace(directory=tmp_path))
    assert _unproven(run) == set()
    for number, told in enumerate(({"converged": ["node1"]}, {"converged": ["node1", "node2"]}, {})):
        place = tmp_path / f".deploy/runs/{number}"
        place.mkdir(parents=True)
        (place / "run.json").write_text(json.dumps({"hosts": ["node1", "node2"], **told}))
        assert _unproven(run) == {"node1", "node2"} - set(told.get("converged", ()))


def test_a_fresh_node_is_no_preview_that_is_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    story, shown = Story(), list[str]()
    story.keep(asked(), result("node1", Status.OK), stats(node1=HostStats(ok=1)), ended(rc=0))
    monkeypatch.setattr(consent, "previewed", lambda *_: Previewed(preview_of(story.events), story))
    run: Any = SimpleNamespace(options=Options(), cancellation=SimpleNamespace(is_asked=False))
    given = permission(run, _work("node1", "node2", fresh="node2"), PlainDisplay(shown.append), lambda: False)
    assert not given.passed
    assert "plan: node2: new; nothing to change elsewhere; no job runs" in "".join(shown)

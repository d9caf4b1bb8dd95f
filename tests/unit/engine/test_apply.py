"""The phases of a plan by one playbook, and what is still to be done after it."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.engine import apply as module
from deploy.engine.options import Options
from deploy.judge.unfinished import Phases
from deploy.plan.build import build_plan
from deploy.plan.tags import tagged
from deploy.run.events import Ending, Event, PhaseEnded
from deploy.run.execute import Execution
from deploy.site.inventory import read_site
from tests.unit.engine.machines import run_on
from tests.unit.show.runs import ended
from tests.unit.site.sites import write_site


@pytest.mark.parametrize("tags", ["munge", "always", None])
def test_what_has_no_task_of_the_tags_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tags: str | None
) -> None:
    """A play without one ends on no host: it was taken for what could still be done, and for not run."""
    site = read_site(write_site(tmp_path))
    plan = build_plan(site)
    chosen = {step.phase.name: step.hosts for step in tagged(plan, tags, None).steps}
    assert bool(chosen) == (tags != "always")
    executions = 0

    def execute(_: object, on_event: Callable[[Event], None], *__: object) -> Execution:
        nonlocal executions
        executions += 1
        for step in plan.steps:
            on_event(PhaseEnded(2.0, step.phase.name, chosen.get(step.phase.name, ())))
        on_event(ended())
        return Execution(0, Ending.FINISHED)

    monkeypatch.setattr(module, "execute", execute)
    work = SimpleNamespace(plan=plan, generated=tmp_path / "generated.json", contract={}, repairs={})
    run, phases = run_on(site, Options(tags=tags), place=tmp_path), Phases()
    module.apply(run, "cluster", work, phases.take, secrets=(), options=run.options)  # type: ignore[arg-type]
    assert executions == 1
    assert phases.not_run() == ()

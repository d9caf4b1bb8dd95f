"""Step: the phases of a plan, by one playbook."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deploy.engine.options import Options
from deploy.engine.run import Run
from deploy.engine.work import Work
from deploy.judge.unfinished import Phases
from deploy.plan.build import Plan
from deploy.plan.catalog import prerequisites
from deploy.plan.generated_inventory import write_inventory
from deploy.plan.generated_playbook import write_playbook
from deploy.plan.tags import tagged
from deploy.run.events import Event, Planned, PlannedPhase
from deploy.run.execute import execute


def apply(
    run: Run,
    playbook: str,
    work: Work,
    tell: Callable[[Event], None],
    *,
    secrets: tuple[Path, ...],
    options: Options,
) -> None:
    """Runs the plan's phases; after a failure, also those that it does not stand in the way of.

    Ansible leaves hosts out of all plays after one that failed there, and ends the playbook when a play
    failed on all of its hosts.
    """
    phases = Phases()

    def on_event(event: Event) -> None:
        phases.take(event)
        tell(event)

    on_event(_planned(tagged(work.plan, options.tags, options.skip_tags)))
    generated = work.generated
    plays = write_playbook(
        run.place / f"{playbook}.json", playbook, {step.phase.group for step in work.plan.steps}
    )
    left: dict[str, tuple[str, ...]] = {}
    while True:
        request = replace(run.request(playbook, generated, secrets, options), playbook=plays)
        execution = execute(request, on_event, run.cancellation, run.ansible)
        before, left = left, phases.open()
        if not left or left == before or phases.is_refused or not execution.came_to_its_end:
            return
        generated = run.place / "left.json"
        write_inventory(generated, run.site, work.plan.only(left), work.contract, work.repairs)


def _planned(plan: Plan) -> Planned:
    phases = (
        PlannedPhase(phase.name, phase.title, step.hosts, prerequisites(phase.name), phase.after_everywhere)
        for step in plan.steps
        for phase in (step.phase,)
    )
    return Planned(time.time(), tuple(phases))

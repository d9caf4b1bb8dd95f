"""What ``deploy cluster`` and ``deploy plan`` do: sequences of the steps beside this file."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace

from deploy.engine.alone import alone_and_asked
from deploy.engine.carry_out import carry_out
from deploy.engine.consent import Agrees, Permission, permission
from deploy.engine.discover import Machines, discover, keep_found
from deploy.engine.display import Display
from deploy.engine.journal import journalled
from deploy.engine.left_over import tell_left_over
from deploy.engine.next_command import next_command
from deploy.engine.preview import previewed
from deploy.engine.recording import Written, known_records
from deploy.engine.run import Run
from deploy.engine.story import Story
from deploy.engine.verify import verify
from deploy.engine.work import Work, work_of
from deploy.judge.convergence import converged_hosts
from deploy.judge.departed import left_over_events
from deploy.judge.plan_outcome import PlanOutcome
from deploy.judge.preview import preview_of
from deploy.judge.summary import Summary, summarize
from deploy.judge.unknown_secrets import refuse_unknown_secrets
from deploy.judge.version_skew import refuse_skew
from deploy.run.cancellation import signals_cancel
from deploy.run.journal import last_run


def converge(whole: Run, display: Display, agrees: Agrees) -> Summary:
    """Makes of a site's machines the cluster that it says; raises DeployError before anything changes."""
    started, story = time.time(), Story(display.event)
    with (
        _under_way(whole, "cluster", display) as meanwhile,
        alone_and_asked(whole, meanwhile, story) as (run, asked),
    ):
        machines = discover(run, story.tell)
        refuse_skew(story.events, run.controllers, run.accounting)
        work = work_of(run, machines, asked, story.tell)
        goes_on = bool(work.plan.steps) and not story.is_stopped
        given = _permission(run, work, machines, display, agrees) if goes_on else Permission(run.options)
        story.keep(*given.passed)
        known = known_records(run, work, renews=goes_on and given.renews_records)
        with journalled(run, work, story, started) as journal:
            keep_found(run, machines, story)
            written = carry_out(run, work, given, story, known) if goes_on else Written()
            tell_left_over(run, work, written, story)
            summary = summarize(story.events, run.hosts, started=started)
            converged = converged_hosts(summary, run.limit) if run.options.converges else ()
            journal.finish(converged=converged, recorded={**known, **written.digests})
            display.finish(summary, next_command(run, summary, is_refused=story.is_refused))
    refuse_unknown_secrets(story.events)
    return summary


def look_ahead(run: Run, display: Display) -> PlanOutcome:
    """What ``converge`` would do; changes nothing, neither on hosts nor in the site."""
    started, story = time.time(), Story()
    with _under_way(run, "plan", display) as meanwhile:
        asked = meanwhile.submit(verify, run, meanwhile)
        machines = discover(run, story.tell)
        work = work_of(run, machines, asked, story.tell)
        before = preview = preview_of(story.events)
        if work.plan.steps and not story.is_broken:
            seen = previewed(run, work, run.options, display.progress)
            failures = (*before.failures, *seen.preview.failures)
            preview = replace(seen.preview, drift=before.drift, failures=failures)
            story.keep(*seen.story.events)
        story.keep(*left_over_events(work.left, work.looked.departed.result(), run.inventory))
    return PlanOutcome(preview, summarize(story.events, run.hosts, started=started))


@contextmanager
def _under_way(run: Run, verb: str, display: Display) -> Iterator[ThreadPoolExecutor]:
    """A run that can be interrupted and is shown; what is asked beside it, a thread does."""
    with signals_cancel(run.cancellation), closing(display), ThreadPoolExecutor(1) as meanwhile:
        display.start(run.command(verb), run.hosts)
        yield meanwhile


def _permission(run: Run, work: Work, machines: Machines, display: Display, agrees: Agrees) -> Permission:
    """Asked for by a preview, where there can be jobs to lose, and secrets that hosts go by."""
    if run.options.check or machines.are_new:
        return Permission(run.options)
    return permission(run, work, display, agrees, _unproven(run))


def _unproven(run: Run) -> set[str]:
    """The hosts on which the last run here did not come to its end.

    What made it fail there may still be so, and be nothing that a preview sees.
    """
    last = last_run(run.site.directory)
    return set(last.hosts) - set(last.converged) if last else set()

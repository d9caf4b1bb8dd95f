"""What ``deploy cluster`` and ``deploy plan`` do: sequences of the steps beside this file."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace

from deploy.engine.alone import alone
from deploy.engine.carry_out import carry_out
from deploy.engine.consent import Agrees, Permission, permission
from deploy.engine.discover import discover, keep_found
from deploy.engine.display import Display
from deploy.engine.journal import journalled
from deploy.engine.left_over import tell_left_over
from deploy.engine.next_command import next_command
from deploy.engine.powered_down import said_of
from deploy.engine.preview import previewed
from deploy.engine.recording import Written, known_records
from deploy.engine.run import Run
from deploy.engine.story import Story
from deploy.engine.verify import verify
from deploy.engine.work import work_of
from deploy.judge.convergence import converged_hosts
from deploy.judge.departed import left_over_events
from deploy.judge.plan_outcome import PlanOutcome
from deploy.judge.preview import preview_of
from deploy.judge.summary import Summary, summarize
from deploy.judge.unknown_secrets import refuse_unknown_secrets
from deploy.judge.version_skew import refuse_skew
from deploy.run.cancellation import signals_cancel
from deploy.run.events import Level, Notice
from deploy.run.journal import last_run


def converge(run: Run, display: Display, agrees: Agrees) -> Summary:
    """Makes of a site's machines the cluster that it says; raises DeployError before anything changes."""
    started, story = time.time(), Story(display.event)
    with _under_way(run, "cluster", display) as meanwhile:
        began, asked = time.monotonic(), meanwhile.submit(verify, run, meanwhile)
        with alone(run, story.tell, is_needed=not run.options.check) as idle:
            # From here on Slurm switches no node off.
            before, run = run, run.narrowed()
            for finding in said_of(run.away - before.away, run.command("cluster")):
                story.tell(Notice(time.time(), Level.WARNING, str(finding)))
            if run is not before or idle <= time.monotonic() - began:
                # What hosts said while another run was at work there is not so any more.
                asked = meanwhile.submit(verify, run, meanwhile)
            machines = discover(run, story.tell)
            refuse_skew(story.events, run.controllers)
            work = work_of(run, machines, asked, story.tell)
            is_to_run = bool(work.plan.steps) and not (story.is_refused or story.is_broken)
            changes = is_to_run and not run.options.check
            # Where nothing is yet, there are no jobs that could be lost, and no secrets that hosts go by.
            is_asked = changes and not machines.are_new
            given = Permission(run.options)
            if is_asked:
                given = permission(run, work, display, agrees, _unproven(run))
            story.keep(*given.passed)
            known = known_records(run, work, renews=changes and not (given.passed and run.options.full))
            with journalled(run, work, story, started) as journal:
                if not (run.options.check or story.is_refused or story.is_broken):
                    keep_found(run, machines)
                written = carry_out(run, work, given, story, known) if is_to_run else Written()
                tell_left_over(run, work, written.left, story)
                summary = summarize(story.events, run.hosts, started=started)
                converged = converged_hosts(summary, run.limit) if run.options.converges else ()
                journal.finish(converged=converged, recorded={**known, **written.digests})
                display.finish(summary, next_command(run, summary, is_refused=story.is_refused))
    refuse_unknown_secrets(story.events)
    return summary


def _unproven(run: Run) -> set[str]:
    """The hosts on which the last run here did not come to its end.

    What made it fail there may still be so, and be nothing that a preview sees.
    """
    last = last_run(run.site.directory)
    return set(last.hosts) - set(last.converged) if last else set()


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

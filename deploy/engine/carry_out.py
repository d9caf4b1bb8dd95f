"""Step: the work is done, and hosts keep a record of it."""

from collections.abc import Mapping
from dataclasses import replace

from deploy.engine.apply import apply
from deploy.engine.consent import Permission
from deploy.engine.members import Known
from deploy.engine.recording import Recording, Written
from deploy.engine.run import Run
from deploy.engine.secrets import borrowed_secrets, completed_secrets
from deploy.engine.story import Story
from deploy.engine.work import Work
from deploy.judge.summary import Outcome, summarize
from deploy.plan.tags import tagged
from deploy.run.events import Event


def carry_out(run: Run, work: Work, given: Permission, story: Story, known: Mapping[str, str]) -> Written:
    """Runs the work, unless the preview was the whole run; what was written of it on hosts.

    ``known`` are by host digests of the records that are there.
    """
    with Recording.of(run.records, work.contract, work.plan, held=work.held, known=known) as recording:

        def tell(event: Event) -> None:
            story.tell(event)
            if run.options.converges:
                recording.go_on(story.events)

        members: dict[str, Known] | None = None
        if not given.passed:
            if run.options.check:
                secrets = borrowed_secrets(run)
            else:
                secrets, members = completed_secrets(run), _prepared(run, work)
            apply(run, "cluster", work, tell, secrets=secrets, options=given.options)
        run.ansible.dismiss()
        summary = summarize(story.events, run.hosts)
        if not run.options.converges or summary.outcome is Outcome.INTERRUPTED or story.is_refused:
            return Written(members=members)
        answering = [name for name, host in summary.hosts.items() if not host.unreachable]
        written = recording.finish(story.events, answering)
    for notice in written.notices:
        story.tell(notice)
    return replace(written, members=members)


def _prepared(run: Run, work: Work) -> dict[str, Known]:
    """Controllers know the hosts, which is returned; what is worked on has no record from here on."""
    members = run.members.remember(work.looked.known, work.plan.hosts)
    worked_on = tagged(work.plan, run.options.tags, run.options.skip_tags)
    run.records.forget(worked_on, work.unrecorded)
    return members

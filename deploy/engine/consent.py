"""Step: whether a run may begin, by what it would do."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from deploy.engine.display import Display
from deploy.engine.options import Options
from deploy.engine.preview import previewed
from deploy.engine.run import Run
from deploy.engine.work import Work
from deploy.errors import DeployError, ExitCode, error
from deploy.judge.findings import with_findings
from deploy.judge.preview import Preview
from deploy.judge.summary import as_preview, summarize
from deploy.run.events import Event

Agrees = Callable[[], bool]
"""Whether whoever may decide wants to go on although jobs would be lost."""

# In a preview of what is about to be carried out, what check mode needs may be put in place already.
_PREPARES = '{"bootstrap_check_mode_prepares": true}'
# Without it the role itself refuses, whoever runs it and whatever the preview could not see.
_AGREED = '{"slurmctld_may_lose_jobs": true}'


@dataclass(frozen=True)
class Permission:
    """What to go on with; ``passed`` is what happened, where the preview is the whole run already."""

    options: Options
    passed: tuple[Event, ...] = ()

    @property
    def renews_records(self) -> bool:
        """Whether hosts get new records; where --full found nothing to change, those that they have hold."""
        return not (self.options.check or (self.passed and self.options.full))


def permission(
    run: Run, work: Work, display: Display, agrees: Agrees, unproven: Collection[str] = ()
) -> Permission:
    """Previews the work, and asks where jobs would be lost. Raises DeployError ``would-lose-jobs``.

    On a fresh node there is nothing to lose: it is checked, and not previewed. A preview that finds nothing
    to do is the whole run, unless there is such a node, or it reached a host that is ``unproven``.
    """
    options = run.options
    agreed = Permission(replace(options, extra=(*options.extra, _AGREED)))
    looking = replace(options, extra=(*options.extra, _PREPARES))
    seen = previewed(run, work.without_fresh(run), looking, display.progress)
    summary = summarize(seen.story.events, work.plan.hosts)
    is_over = seen.story.is_refused or bool(summary.trouble) or run.cancellation.is_asked
    is_proven = not any(summary.hosts[name].is_good for name in unproven if name in summary.hosts)
    is_all = summary.is_nothing_to_do and is_proven and not work.fresh
    if is_over or is_all:
        for result in with_findings(seen.story.events):
            display.event(result)
        return Permission(options, tuple(as_preview(seen.story.events)))
    preview = replace(seen.preview, fresh=work.fresh)
    if work.fresh or not summary.is_nothing_to_do:
        display.plan(preview)
    if not preview.needs_consent:
        # What the preview could not see the role refuses, unless it was typed before.
        return agreed if options.may_lose_jobs else Permission(options)
    display.close()
    if not agrees():
        raise _refusal(preview, run.again())
    display.start(run.command("cluster"), work.plan.hosts)
    return agreed


def _refusal(preview: Preview, command: str) -> DeployError:
    return error(
        "would-lose-jobs",
        "nothing was changed: " + "; ".join(_reasons(preview)),
        hint=f"wait until they are done (squeue), or go on with: {command} --yes",
        exit_code=ExitCode.CHANGES_PENDING,
    )


def _reasons(preview: Preview) -> list[str]:
    if preview.jobs is None:
        parameters = ", ".join(loss.parameter for loss in preview.losses)
        return [f"a change of {parameters} loses jobs, and Slurm does not answer which there are"]
    return [
        f"a change of {loss.parameter} ({loss.before} -> {loss.after or 'removed'}) would lose "
        + ", ".join(f"job {job.id} of {job.user}" for job in loss.jobs)
        for loss in preview.losses
        if loss.jobs
    ]

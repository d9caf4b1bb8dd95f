"""Step: what a run would do, by the same plays in check mode."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from deploy.engine.apply import apply
from deploy.engine.options import Options
from deploy.engine.run import Run
from deploy.engine.secrets import borrowed_secrets
from deploy.engine.story import Story
from deploy.engine.work import Work
from deploy.judge.absent_controller import refuse_absent_controller
from deploy.judge.moved_controller import moved_controller, with_move
from deploy.judge.preview import Preview, preview_of
from deploy.judge.unknown_secrets import refuse_unknown_secrets
from deploy.judge.version_skew import refuse_skew
from deploy.plan.tags import tagged
from deploy.run.events import Event, PlayStarted, TaskStarted


@dataclass(frozen=True)
class Previewed:
    """What a run would do, and what was told meanwhile."""

    preview: Preview
    story: Story


def previewed(
    run: Run, work: Work, options: Options, progress: Callable[[PlayStarted | TaskStarted], None]
) -> Previewed:
    """Changes nothing; of what happens only the ``progress`` is shown.

    Raises DeployError ``slurm-version-skew``, ``new-controller-absent`` and ``unknown-secret``.
    """

    def show(event: Event) -> None:
        if isinstance(event, TaskStarted | PlayStarted):
            progress(event)

    story = Story(show)
    looking = replace(options, check=True, diff=True)
    apply(run, "plan", work, story.tell, secrets=borrowed_secrets(run), options=looking)
    refuse_skew(story.events, run.controllers, run.accounting)
    configured = tagged(work.plan, options.tags, options.skip_tags).groups["phase_controller"]
    refuse_absent_controller(story.events, run.site, configured, run.limit)
    refuse_unknown_secrets(story.events)
    preview, moved = preview_of(story.events), moved_controller(story.events, run.site)
    return Previewed(with_move(preview, moved, run.members.queue(moved)) if moved else preview, story)

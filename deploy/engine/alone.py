"""Step: nobody else changes the cluster meanwhile, nor does Slurm switch its nodes off."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from deploy.engine.powered_down import said_of
from deploy.engine.run import Run
from deploy.engine.story import Story
from deploy.engine.verify import Looked, verify
from deploy.run.cluster_lock import cluster_lock, nodes_left_on
from deploy.run.events import Event, Level, Notice
from deploy.site.power_saving import power_saved


@contextmanager
def alone(run: Run, tell: Callable[[Event], None], *, is_needed: bool) -> Iterator[float]:
    """Holds the cluster's lock on its controllers; gives how many seconds ago another run let go of it.

    Slurm switches no node off as long. Raises DeployError ``cluster-locked``.
    """

    def on_lost(controller: str) -> None:
        run.say(f"{controller}: the connection that holds the cluster's lock ended")
        run.cancellation.ask()

    controllers = run.site.controllers if is_needed else ()
    with cluster_lock(controllers, run.options.login, run.site.directory, on_lost) as held:
        for why in held.unasked:
            message = f"no lock, so nothing keeps a run from another machine away: {why}"
            tell(Notice(time.time(), Level.WARNING, message))
        yield held.idle


@contextmanager
def alone_and_asked(
    run: Run, meanwhile: ThreadPoolExecutor, story: Story
) -> Iterator[tuple[Run, Future[Looked]]]:
    """Holds the lock where the run may change something; gives the run on what is on, and what that says.

    They are asked ``meanwhile``, while the lock is waited for, and once more where another run was at work at
    that time, or where nodes are left out: what they said then is not so any more. Raises DeployError
    ``cluster-locked``.
    """
    began, asked = time.monotonic(), meanwhile.submit(verify, run, meanwhile)
    with alone(run, story.tell, is_needed=not run.options.check) as idle:
        # From here on Slurm switches no node off.
        narrowed = run.narrowed()
        for finding in said_of(narrowed.away - run.away, run.again()):
            story.tell(Notice(time.time(), Level.WARNING, str(finding)))
        if narrowed is not run or idle <= time.monotonic() - began:
            asked = meanwhile.submit(verify, narrowed, meanwhile)
        yield narrowed, asked


@contextmanager
def nodes_on(run: Run) -> Iterator[Run]:
    """Has Slurm switch no node off, and nothing else; gives the run on those that are on."""
    if not power_saved(run.site.resolved):
        yield run
        return
    with nodes_left_on(run.site.controllers, run.options.login):
        yield run.narrowed()

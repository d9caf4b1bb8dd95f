"""Step: nobody else changes the cluster meanwhile, and what hosts say of themselves is of that time."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from deploy.engine.run import Run
from deploy.engine.story import Story
from deploy.engine.verify import Looked, verify
from deploy.run.cluster_lock import cluster_lock
from deploy.run.events import Event, Level, Notice


@contextmanager
def alone(run: Run, tell: Callable[[Event], None], *, is_needed: bool) -> Iterator[float]:
    """Holds the cluster's lock on its controllers; gives how many seconds ago another run let go of it.

    Raises DeployError ``cluster-locked``.
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
def alone_and_asked(run: Run, meanwhile: ThreadPoolExecutor, story: Story) -> Iterator[Future[Looked]]:
    """Holds the lock where the run may change something, and gives what hosts are asked ``meanwhile``.

    They are asked while the lock is waited for, and once more where another run was at work at that time:
    what they said then is not so any more. Raises DeployError ``cluster-locked``.
    """
    began, asked = time.monotonic(), meanwhile.submit(verify, run, meanwhile)
    with alone(run, story.tell, is_needed=not run.options.check) as idle:
        if idle <= time.monotonic() - began:
            asked = meanwhile.submit(verify, run, meanwhile)
        yield asked

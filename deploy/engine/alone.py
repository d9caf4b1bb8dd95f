"""Step: nobody else changes the cluster meanwhile, nor does Slurm switch its nodes off."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deploy.engine.run import Run
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
def nodes_on(run: Run) -> Iterator[Run]:
    """Has Slurm switch no node off, and nothing else; gives the run on those that are on."""
    if not power_saved(run.site.resolved):
        yield run
        return
    with nodes_left_on(run.site.controllers, run.options.login):
        yield run.narrowed()

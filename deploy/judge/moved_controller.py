"""A cluster whose controller shall be a machine that has not its state: it would know none of the jobs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from deploy.judge.preview import Loss, Preview, jobs_of
from deploy.judge.served import is_among, served
from deploy.run.events import Event
from deploy.site.inventory import Site

Queue = list[dict[str, str]] | None
"""The jobs of a cluster, as ``slurm_jobs`` has them; None where its controller does not answer."""


@dataclass(frozen=True)
class Moved:
    """``witness`` is of a cluster by its ``file``, whose controllers were ``before`` and shall be ``after``.

    ``has_state``: a slurmctld ran by what ``after`` has, there or where it was copied from. ``shares``: it is
    one of several, of which another one was there before, and so has its storage.
    """

    witness: str
    file: str
    before: str
    after: str
    has_state: bool
    shares: bool = False

    def loss(self, queue: Queue) -> Loss | None:
        """What is lost; nothing where the state was copied from a slurmctld that is stopped since."""
        if self.has_state and queue is None:
            return None
        what = (
            f"slurmctld on {self.before} still runs, so what {self.after} has of the state is old"
            if self.has_state
            else f"{self.after} has not the state of this cluster"
        )
        do = (
            f"mount on {self.after} the storage that controllers share, and the same again; where deploy "
            "itself mounts it, that is done before slurmctld starts, and no job is lost"
            if self.shares
            else f"stop slurmctld on {self.before} and copy its StateSaveLocation to {self.after}, "
            f"or put {self.before} back into [slurm-master]; where its disk is lost: deploy restore"
        )
        why = (
            f"{self.witness} is of the cluster of {self.before} ({self.file}); {what}, and knows none of its "
            f"jobs: {do}"
        )
        return Loss("SlurmctldHost", self.before, self.after, why, jobs_of(queue or ()))


def moved_controller(events: Iterable[Event], site: Site) -> Moved | None:
    """The move that machines report, whether or not jobs are lost by it; None where the controller stays."""
    found = served(events)
    first = site.controller
    if first.name not in found:
        return None
    own = found[first.name]
    is_controller = is_among(first, own)
    for name, said in found.items():
        cluster = said["cluster"]
        if name == first.name or not cluster or (is_controller and is_among(first, said)):
            continue
        # Controllers of one cluster share their state.
        is_ours = any(is_among(master, said) for master in site.controllers)
        if own["state"] and is_ours:
            continue
        before = ", ".join(cluster["controllers"]) or "another controller"
        shares = is_ours and len(site.controllers) > 1
        return Moved(name, cluster["file"], before, first.name, own["state"], shares)
    return None


def with_move(preview: Preview, moved: Moved, queue: Queue) -> Preview:
    """The preview with what is lost by a move; the jobs are those of the controller that was."""
    loss = moved.loss(queue)
    if loss is None:
        return preview
    jobs = None if queue is None else loss.jobs
    return replace(preview, losses=(loss, *preview.losses), jobs=jobs)

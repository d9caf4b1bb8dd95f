"""What a backup lacks, by the jobs that nodes run now."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from deploy.site.node_lists import fold


@dataclass(frozen=True)
class LostSince:
    """Jobs by what becomes of them when the queue of a backup is Slurm's again; some with their nodes.

    ``unknown`` were submitted after the backup, or are tasks of ``arrays`` that waited in it; ``started``
    waited in it, ``goes_on`` ran then and do, ``again`` waited or ran then and are on no node now: slurmctld
    takes those that ended for jobs that wait, or that a node lost. The next job gets ``least_job_id`` or a
    later one.
    """

    unknown: Mapping[int, Collection[str]] = field(default_factory=dict)
    started: Mapping[int, Collection[str]] = field(default_factory=dict)
    goes_on: tuple[int, ...] = ()
    again: tuple[int, ...] = ()
    arrays: tuple[int, ...] = ()
    least_job_id: int = 1
    is_known: bool = True
    """Whether the backup says which jobs there were."""

    def losses(self) -> Iterator[str]:
        """What is lost, in lines."""
        if self.unknown and not self.arrays:
            yield (
                f"submitted after the backup, and not in it: {_named(self.unknown)}; slurmctld ends them "
                "when it starts, and they are in no accounting"
            )
        elif self.unknown:
            yield (
                f"not in the backup by their ids: {_named(self.unknown)}; slurmctld ends them when it "
                f"starts. Those that are tasks of the job arrays {_folded(self.arrays)}, which waited then, "
                "start once more; the others were submitted after the backup, and are in no accounting"
            )
        if self.started:
            yield (
                f"waited in the backup, and run now: {_named(self.started)}; slurmctld ends them, and "
                "they start once more"
            )
        if self.again:
            yield (
                "waited or ran when the backup was made, and on no node that answers now: "
                f"{_counted(self.again)}; those that ended since run once more, and write over what they "
                "wrote"
            )
        if not self.is_known:
            yield "slurmctld did not answer when the backup was made: which running jobs it has is not known"

    def notes(self) -> Iterator[str]:
        """What goes on, in lines."""
        if self.goes_on:
            yield f"jobs of the backup that run on nodes, and go on: {len(self.goes_on)}"


def lost_since(queue: Mapping[str, Any], running: Mapping[str, Collection[int]]) -> LostSince:
    """``queue`` is that of the backup's manifest, ``running`` the jobs on each node that answered."""
    nodes: dict[int, list[str]] = {}
    for node, jobs in running.items():
        for job in jobs:
            nodes.setdefault(job, []).append(node)
    ran, waited = set(queue.get("running", ())), set(queue.get("waiting", ()))
    least = max([*(job + 1 for job in nodes), int(queue.get("next_job_id") or 1)])
    if not queue:
        return LostSince(least_job_id=least, is_known=not nodes)
    return LostSince(
        {job: nodes[job] for job in sorted(nodes) if job not in ran | waited},
        {job: nodes[job] for job in sorted(nodes) if job in waited - ran},
        tuple(sorted(nodes.keys() & ran)),
        tuple(sorted((ran | waited) - nodes.keys())),
        tuple(sorted(queue.get("arrays", ()))),
        least,
    )


def _named(jobs: Mapping[int, Collection[str]]) -> str:
    return ", ".join(f"job {job} ({', '.join(nodes)})" for job, nodes in jobs.items())


def _folded(jobs: Collection[int]) -> str:
    """``4,[10-12]``."""
    return fold(map(str, jobs))


def _counted(jobs: Collection[int]) -> str:
    return f"{len(jobs)} job{'s' if len(jobs) > 1 else ''} ({_folded(jobs)})"

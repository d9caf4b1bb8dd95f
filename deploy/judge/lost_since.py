"""What a backup lacks, by the jobs that nodes run now."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LostSince:
    """Jobs by what becomes of them when the queue of a backup is Slurm's again; some with their nodes.

    ``unknown`` were submitted after the backup, ``started`` waited in it, ``goes_on`` ran then and do,
    ``ended`` ran then and do no more. The next job gets ``least_job_id`` or a later one.
    """

    unknown: Mapping[int, Collection[str]] = field(default_factory=dict)
    started: Mapping[int, Collection[str]] = field(default_factory=dict)
    goes_on: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()
    least_job_id: int = 1
    is_known: bool = True
    """Whether the backup says which jobs there were."""

    def losses(self) -> Iterator[str]:
        """What is lost, in lines."""
        if self.unknown:
            yield (
                f"submitted after the backup, and not in it: {_named(self.unknown)}; slurmctld ends them "
                "when it starts, and they are in no accounting"
            )
        if self.started:
            yield (
                f"waited in the backup, and run now: {_named(self.started)}; slurmctld ends them, and "
                "they start once more"
            )
        if not self.is_known:
            yield "slurmctld did not answer when the backup was made: which running jobs it has is not known"

    def notes(self) -> Iterator[str]:
        """What goes on and what is over, in lines."""
        if self.goes_on:
            yield f"jobs of the backup that run on nodes, and go on: {len(self.goes_on)}"
        if self.ended:
            yield f"ran then and on no node now: {', '.join(map(str, self.ended))}"


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
        tuple(sorted(ran - nodes.keys())),
        least,
    )


def _named(jobs: Mapping[int, Collection[str]]) -> str:
    return ", ".join(f"job {job} ({', '.join(nodes)})" for job, nodes in jobs.items())

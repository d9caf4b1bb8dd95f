"""What a run would do, from the events of its check mode: the changes, what they disturb, the jobs there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException

from deploy.plan.impact import Impact, impact_of
from deploy.run.events import Event, HostResult, HostVerified, Status
from deploy.site.node_lists import fold

_PENDING = "PENDING"


@dataclass(frozen=True)
class Job:
    """A job as the controller knows it; ``nodes`` is empty while it waits."""

    id: str
    state: str
    user: str
    nodes: frozenset[str]
    partitions: frozenset[str] = frozenset()
    """Where it runs; while it waits, all that it may run in."""
    required: frozenset[str] = frozenset()
    """The nodes that it asked for by their names."""

    @property
    def is_pending(self) -> bool:
        """Whether it waits for its start."""
        return self.state == _PENDING


@dataclass(frozen=True)
class Loss:
    """A change that loses jobs: ``parameter`` goes from ``before`` to ``after``."""

    parameter: str
    before: str
    after: str
    why: str
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class Change:
    """One task that would change one host; ``jobs`` are those that run there now, if it disturbs anything."""

    result: HostResult
    impact: Impact
    service: str
    reasons: tuple[str, ...]
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class Preview:
    """Everything a run would do. ``jobs`` is None when a configured Slurm did not answer.

    ``drift`` says by host what differs from what was converged there. On ``fresh`` nodes nothing is yet: all
    of it will be done, and was not looked at.
    """

    changes: tuple[Change, ...]
    losses: tuple[Loss, ...]
    jobs: tuple[Job, ...] | None
    failures: tuple[HostResult, ...]
    is_slurm_configured: bool
    drift: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fresh: frozenset[str] = frozenset()

    @property
    def needs_consent(self) -> bool:
        """Whether jobs would be lost, or nobody can say that none would."""
        if self.jobs is None:
            return bool(self.losses)
        return any(loss.jobs for loss in self.losses)

    @property
    def impact(self) -> Impact:
        """The worst impact of all changes."""
        return max((change.impact for change in self.changes), default=Impact.NONE)


def preview_of(events: Iterable[Event]) -> Preview:
    """What the events of a check-mode run of playbooks/plan.yml preview, and of asking hosts before it."""
    told = list(events)
    results = [event for event in told if isinstance(event, HostResult)]
    slurm = asked_slurm(results)
    jobs = _jobs(slurm)
    losses = tuple(_losses(results, jobs))
    return Preview(
        changes=tuple(_change(result, jobs or ()) for result in results if result.status is Status.CHANGED),
        losses=losses,
        jobs=jobs,
        failures=tuple(result for result in results if result.is_trouble),
        is_slurm_configured=bool(slurm.get("configured")),
        drift={event.host: event.drift for event in told if isinstance(event, HostVerified) and event.drift},
    )


def asked_slurm(events: Iterable[Event]) -> Mapping[str, Any]:
    """What the module slurm_jobs answered; empty when the controller was not asked or not reached."""
    for event in events:
        if isinstance(event, HostResult) and event.answer is not None and "slurm" in event.answer:
            answer: Mapping[str, Any] = event.answer["slurm"]
            return answer
    return {}


def _jobs(slurm: Mapping[str, Any]) -> tuple[Job, ...] | None:
    if not slurm or (slurm["configured"] and not slurm["answers"]):
        return None
    return jobs_of(slurm["jobs"])


def jobs_of(listed: Iterable[Mapping[str, str]]) -> tuple[Job, ...]:
    """Jobs as the module slurm_jobs lists them."""
    return tuple(map(_job, listed))


def _job(job: Mapping[str, str]) -> Job:
    partitions = frozenset(job["partition"].split(","))
    return Job(
        job["id"],
        job["state"],
        job["user"],
        _nodes(job["nodes"]),
        partitions,
        _nodes(job.get("required", "")),
    )


def _nodes(text: str) -> frozenset[str]:
    try:
        return frozenset(NodeSet(text)) if text else frozenset()
    except NodeSetException:
        return frozenset()


def _change(result: HostResult, jobs: Sequence[Job]) -> Change:
    said = result.impact or {}
    impact = impact_of(said.get("kind"))
    if any(_lost(entry, jobs) for entry in said.get("guarded") or ()):
        impact = Impact.KILLS_JOBS
    there = tuple(job for job in jobs if result.host in job.nodes) if impact is not Impact.NONE else ()
    reasons = tuple(str(reason) for reason in said.get("reasons") or ())
    return Change(result, impact, str(said.get("service", "")), reasons, there)


def _losses(results: Iterable[HostResult], jobs: tuple[Job, ...] | None) -> Iterable[Loss]:
    for result in results:
        if result.status is not Status.CHANGED or not result.impact:
            continue
        for entry in result.impact.get("guarded") or ():
            lost = tuple(_lost(entry, jobs or ()))
            yield Loss(_name(entry), entry["before"], entry["after"], entry["why"], lost)


def _name(entry: Mapping[str, Any]) -> str:
    """The parameter, and of whom it is one."""
    removes_them = entry["parameter"] in {"NodeName", "PartitionName"}
    of = fold(entry["nodes"]) if "nodes" in entry else entry.get("partition", "")
    return f"{entry['parameter']} of {of}" if of and not removes_them else entry["parameter"]


def _lost(entry: Mapping[str, Any], jobs: Sequence[Job]) -> list[Job]:
    nodes, partition = frozenset(entry.get("nodes", ())), entry.get("partition")
    return [
        job
        for job in jobs
        if (
            (entry.get("pending") or not job.is_pending)
            and (not nodes or nodes & job.nodes)
            and (not partition or partition in job.partitions)
        )
        or (entry.get("required") and job.is_pending and nodes & job.required)
    ]

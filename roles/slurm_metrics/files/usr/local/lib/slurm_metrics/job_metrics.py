"""Jobs, as squeue has them: what waits and runs, how long it waited, how it ended.

A job array's tasks that wait are one line of squeue, and count as many jobs as they are.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from families import Histogram, Labels, counter, gauge
from prometheus_client import Metric

_FIELDS = (
    *("JobArrayID", "JobID", "State", "Partition", "UserName", "Account", "QOS", "SubmitTime"),
    *("EligibleTime", "StartTime", "EndTime", "TimeLimit", "tres-alloc", "NodeList"),
)
# A reason may hold anything, so it comes last.
ARGUMENTS = (
    *("squeue", "--all", "--noheader", "--states=all"),
    "--Format=" + ",".join(f"{field}:|" for field in _FIELDS) + ",Reason:",
)
_ENDED = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
        *("PREEMPTED", "REVOKED", "TIMEOUT"),
    }
)
_WAITING = frozenset(
    {
        *("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"),
        "EXPEDITING",  # from Slurm 25.11 on
    }
)
_FAILED = ("FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT", "COMPLETED", "CANCELLED")
_WAIT_BOUNDS = (10, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600, 7 * 24 * 3600)
_UNITS = {"": 1 << 20, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_TRES = re.compile(r"(?:^|,)(cpu|mem|gres/gpu)=([\d.]+)([KMGTP]?)")
_TIME_LIMIT = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)$")
_STEP = re.compile(r"(\d+)(?:-(\d+)(?::(\d+))?)?$")
# What a job may wait for on purpose does not make it a job that waits for the cluster.
_WILLING = frozenset(
    {
        "BeginTime",
        "Dependency",
        "DependencyNeverSatisfied",
        "JobHeldUser",
        "JobHeldAdmin",
        "JobArrayTaskLimit",
    }
)


class Resources(NamedTuple):
    """What a job has, or asks for while it waits; memory in bytes."""

    cpus: int
    gpus: int
    memory: int


class Job(NamedTuple):
    """One line of squeue; times in seconds since the epoch, 0 where there is none."""

    id: str
    number: str
    """Its own one, also of a task of an array: what programs around jobs and NVIDIA's exporter have."""
    state: str
    partition: str
    user: str
    account: str
    qos: str
    submitted: float
    eligible: float
    started: float
    ended: float
    time_limit: str
    resources: Resources
    nodes: str
    reason: str

    @property
    def tasks(self) -> int:
        """How many jobs this line stands for."""
        return tasks_of(self.id)

    @property
    def is_waiting(self) -> bool:
        """Whether it has not started."""
        return self.state in _WAITING

    @property
    def has_started(self) -> bool:
        """Whether it has: one that is cancelled while it waits "started" in that second, on no node."""
        return bool(self.started) and not self.is_waiting and (self.state not in _ENDED or bool(self.nodes))


class Reader:
    """Reads lines; the same words of resources come again and again."""

    def __init__(self) -> None:
        self._known: dict[str, Resources] = {}

    def jobs(self, text: str) -> list[Job]:
        """All jobs. Raises ValueError when a line has too few fields."""
        return [self._job(line.split("|", len(_FIELDS))) for line in text.splitlines() if line]

    def _job(self, words: Sequence[str]) -> Job:
        name, number, state, partition, user, account, qos, submitted, eligible, started, ended, *rest = words
        limit, tres, nodes, reason = rest
        resources = self._known.get(tres)
        if resources is None:
            resources = self._known[tres] = resources_of(tres)
        return Job(
            *(name, number, state, partition, user, account, qos),
            *(_time(submitted), _time(eligible), _time(started), _time(ended)),
            *(limit, resources, nodes, reason.partition(",")[0].strip()),
        )


def _time(text: str) -> float:
    return float(text) if text.isdigit() else 0.0


def resources_of(tres: str) -> Resources:
    """cpu=4,mem=1.50G,node=2,gres/gpu=4."""
    found = {kind: (float(number), unit) for kind, number, unit in _TRES.findall(tres)}
    (cpus, _), (gpus, _), (memory, unit) = (found.get(kind, (0.0, "")) for kind in ("cpu", "gres/gpu", "mem"))
    return Resources(int(cpus), int(gpus), int(memory * _UNITS[unit]))


def tasks_of(number: str) -> int:
    """12_[1-9:2,20%3] stands for six tasks."""
    _, bracket, inner = number.partition("_[")
    if not bracket:
        return 1
    total = 0
    for part in inner.rstrip("]").partition("%")[0].split(","):
        if found := _STEP.match(part):
            first, last, step = int(found[1]), int(found[2] or found[1]), int(found[3] or 1)
            total += (last - first) // step + 1
    return max(total, 1)


def seconds_of(limit: str) -> float | None:
    """A time limit such as 1-00:30:00 or 30:00 in seconds; None for UNLIMITED and what is unknown."""
    found = _TIME_LIMIT.match(limit)
    if not found:
        return None
    days, hours, minutes, seconds = (int(number or 0) for number in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


class JobMetrics:
    """Keeps what is counted from one round to the next.

    ``named`` is how many running jobs get metrics of their own: those with the most GPUs, then CPUs.
    """

    def __init__(self, named: int) -> None:
        self._named = named
        self._waited = Histogram(_WAIT_BOUNDS)
        self._ended: dict[Labels, float] = defaultdict(float)
        self._starts: set[tuple[str, float]] | None = None
        self._ends: set[tuple[str, float]] = set()

    def metrics(self, text: str, now: float) -> list[Metric]:
        """Everything that is said of jobs."""
        jobs = Reader().jobs(text)
        self._count(jobs)
        present = [job for job in jobs if job.state not in _ENDED]
        return [
            *_of_queue(present),
            *_of_waiting(present, now),
            *_of_completing(present, now),
            *_of_single(present, self._named),
            self._waited.family(
                "slurm_job_wait_seconds",
                "How long jobs waited that started while this ran, since they could.",
                "partition",
            ),
            counter(
                "slurm_jobs_ended_total",
                "Jobs that ended while this ran.",
                ["partition", "state"],
                self._ended,
            ),
        ]

    def _count(self, jobs: Sequence[Job]) -> None:
        """Counts starts and ends that the round before did not see; the first round only learns them."""
        starts = {(job.id, job.started): job for job in jobs if job.has_started}
        ends = {(job.id, job.ended): job for job in jobs if job.state in _ENDED}
        for partition in {job.partition for job in jobs}:
            self._waited.know(partition)
            for state in _FAILED:
                self._ended[partition, state.lower()] += 0
        if self._starts is not None:
            for key in starts.keys() - self._starts:
                job = starts[key]
                self._waited.add(job.partition, max(job.started - (job.eligible or job.submitted), 0))
            for key in ends.keys() - self._ends:
                self._ended[ends[key].partition, ends[key].state.lower()] += 1
        self._starts, self._ends = set(starts), set(ends)


def _of_queue(jobs: Sequence[Job]) -> Iterator[Metric]:
    labels = ["partition", "user", "account", "state"]
    counts: dict[Labels, float] = defaultdict(float)
    cpus: dict[Labels, float] = defaultdict(float)
    gpus: dict[Labels, float] = defaultdict(float)
    memory: dict[Labels, float] = defaultdict(float)
    for job in jobs:
        key = (job.partition, job.user, job.account, job.state.lower())
        tasks = job.tasks
        counts[key] += tasks
        cpus[key] += job.resources.cpus * tasks
        gpus[key] += job.resources.gpus * tasks
        memory[key] += job.resources.memory * tasks
    yield gauge("slurm_jobs", "Jobs that wait, run or end.", labels, counts)
    yield gauge("slurm_jobs_cpus", "CPUs that those jobs have or ask for.", labels, cpus)
    yield gauge("slurm_jobs_gpus", "GPUs that those jobs have or ask for.", labels, gpus)
    yield gauge("slurm_jobs_memory_bytes", "Memory that those jobs have or ask for.", labels, memory)


def _of_waiting(jobs: Sequence[Job], now: float) -> Iterator[Metric]:
    reasons: dict[Labels, float] = defaultdict(float)
    oldest: dict[Labels, float] = {(job.partition,): 0 for job in jobs}
    unseen: dict[Labels, float] = {(job.partition,): 0 for job in jobs}
    for job in jobs:
        if not job.is_waiting:
            continue
        reason = job.reason or "None"
        reasons[job.partition, reason] += job.tasks
        if reason == "None":
            key = (job.partition,)
            unseen[key] = max(unseen[key], now - max(job.eligible, job.submitted))
        if job.reason not in _WILLING and job.eligible:
            key = (job.partition,)
            oldest[key] = max(oldest[key], now - job.eligible)
    yield gauge("slurm_jobs_pending", "Jobs that wait, by why.", ["partition", "reason"], reasons)
    yield gauge(
        "slurm_jobs_pending_oldest_seconds",
        "How long the job has waited that waits longest; not those that are held or wait on purpose.",
        ["partition"],
        oldest,
    )
    yield gauge(
        "slurm_jobs_unseen_oldest_seconds",
        "How long the job has waited that waits longest of those of which Slurm does not say why.",
        ["partition"],
        unseen,
    )


def _of_completing(jobs: Sequence[Job], now: float) -> Iterator[Metric]:
    longest = max((now - job.ended for job in jobs if job.state == "COMPLETING" and job.ended), default=0.0)
    yield gauge(
        "slurm_jobs_completing_oldest_seconds",
        "How long the job has been completing that takes longest.",
        [],
        {(): max(longest, 0.0)},
    )


def _of_single(jobs: Sequence[Job], named: int) -> Iterator[Metric]:
    running = [job for job in jobs if job.state == "RUNNING"]
    largest = heapq.nlargest(named, running, key=lambda job: (job.resources, job.id))
    yield gauge(
        "slurm_job_info",
        "1 for each of the largest jobs that run; number is its own where job_id is a task of an array.",
        ["job_id", "number", "user", "account", "partition", "qos"],
        {(job.id, job.number, job.user, job.account, job.partition, job.qos): 1 for job in largest},
    )
    for name, meaning, place in (
        ("slurm_job_cpus", "CPUs of a job.", 0),
        ("slurm_job_gpus", "GPUs of a job.", 1),
        ("slurm_job_memory_bytes", "Memory of a job, as it asked for.", 2),
    ):
        yield gauge(name, meaning, ["job_id"], {(job.id,): job.resources[place] for job in largest})
    yield gauge(
        "slurm_job_start_timestamp_seconds",
        "When a job started.",
        ["job_id"],
        {(job.id,): job.started for job in largest},
    )
    yield gauge(
        "slurm_job_time_limit_seconds",
        "How long a job may run; none is said of one without a limit.",
        ["job_id"],
        {(job.id,): limit for job in largest if (limit := seconds_of(job.time_limit)) is not None},
    )
    yield gauge(
        "slurm_job_node",
        "1 for each node of a job.",
        ["job_id", "node"],
        {(job.id, node): 1 for job in largest for node in expand(job.nodes)},
    )


_RANGE = re.compile(r"\[([^\]]*)\]")
_PART = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")


def expand(nodes: str) -> Iterator[str]:
    """The names in a list of Slurm's: node[1-2,5],gpu01 are four. Numbers keep their leading zeros."""
    for part in _PART.findall(nodes):
        found = _RANGE.search(part)
        if not found:
            yield part
            continue
        for piece in found[1].split(","):
            first, _, last = piece.partition("-")
            for number in range(int(first), int(last or first) + 1):
                # A name may have a second range behind the first.
                yield from expand(f"{part[: found.start()]}{number:0{len(first)}d}{part[found.end() :]}")

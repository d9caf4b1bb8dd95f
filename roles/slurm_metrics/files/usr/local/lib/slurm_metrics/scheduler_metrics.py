"""slurmctld's own statistics, as sdiag prints them; it starts them anew at midnight and with slurmctld."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from families import counter, gauge
from prometheus_client import Metric

ARGUMENTS = ("sdiag",)
_LINE = re.compile(r"\s*([A-Za-z][^:]*?)\s*:\s+(-?\d+)\s*$")
_RPC = re.compile(r"\s+(\S+?)\s*\(\s*\d+\) count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)")
_SINCE = re.compile(r"Data since\s+.*\((\d+)\)")
_MICROSECONDS = 1e-6
_CHAPTERS = {
    "Main schedule statistics": "main",
    "Backfilling stats": "backfill",
    "Remote Procedure Call statistics by message type": "type",
    "Remote Procedure Call statistics by user": "user",
    "Main scheduler exit": "main exit",
    "Backfill exit": "backfill exit",
    "Pending RPC statistics": "pending",
}
# chapter, line, metric, what it is multiplied with, meaning
_GAUGES: Sequence[tuple[str, str, str, float, str]] = (
    ("", "Server thread count", "slurm_scheduler_threads", 1, "Threads of slurmctld that answer somebody."),
    ("", "Agent queue size", "slurm_scheduler_agent_queue", 1, "Messages that wait to be sent to nodes."),
    ("", "Agent thread count", "slurm_scheduler_agent_threads", 1, "Threads that send messages to nodes."),
    (
        *("", "DBD Agent queue size", "slurm_scheduler_dbd_queue", 1),
        "Messages that wait for slurmdbd; slurmctld loses some when there are too many.",
    ),
    (
        *("main", "Last cycle", "slurm_scheduler_main_last_cycle_seconds", _MICROSECONDS),
        "How long the main scheduler took the last time.",
    ),
    (
        *("main", "Max cycle", "slurm_scheduler_main_max_cycle_seconds", _MICROSECONDS),
        "The longest that the main scheduler took.",
    ),
    (
        *("main", "Mean cycle", "slurm_scheduler_main_mean_cycle_seconds", _MICROSECONDS),
        "How long the main scheduler takes on average.",
    ),
    (
        *("main", "Last queue length", "slurm_scheduler_main_queue", 1),
        "Jobs that the main scheduler looked at the last time.",
    ),
    (
        *("backfill", "Last cycle", "slurm_scheduler_backfill_last_cycle_seconds", _MICROSECONDS),
        "How long the backfill scheduler took the last time.",
    ),
    (
        *("backfill", "Max cycle", "slurm_scheduler_backfill_max_cycle_seconds", _MICROSECONDS),
        "The longest that the backfill scheduler took.",
    ),
    (
        *("backfill", "Last depth cycle", "slurm_scheduler_backfill_last_depth", 1),
        "Jobs that the backfill scheduler tried the last time.",
    ),
    (
        *("backfill", "Last queue length", "slurm_scheduler_backfill_queue", 1),
        "Jobs that waited for the backfill scheduler the last time.",
    ),
)
_COUNTERS: Sequence[tuple[str, str, str, str]] = (
    ("", "Jobs submitted", "slurm_scheduler_jobs_submitted_total", "Jobs submitted."),
    ("", "Jobs started", "slurm_scheduler_jobs_started_total", "Jobs started."),
    ("", "Jobs completed", "slurm_scheduler_jobs_completed_total", "Jobs completed."),
    ("", "Jobs canceled", "slurm_scheduler_jobs_canceled_total", "Jobs cancelled."),
    ("", "Jobs failed", "slurm_scheduler_jobs_failed_total", "Jobs that slurmctld itself had to fail."),
    ("main", "Total cycles", "slurm_scheduler_main_cycles_total", "Rounds of the main scheduler."),
    (
        "backfill",
        "Total cycles",
        "slurm_scheduler_backfill_cycles_total",
        "Rounds of the backfill scheduler.",
    ),
    (
        *(
            "backfill",
            "Total backfilled jobs (since last slurm start)",
            "slurm_scheduler_backfilled_jobs_total",
        ),
        "Jobs that the backfill scheduler started.",
    ),
)
_Numbers = Mapping[tuple[str, str], float]
_Calls = Mapping[tuple[str, str], tuple[float, float]]


def parse(text: str) -> tuple[_Numbers, _Calls]:
    """Numbers by chapter and line, and how many calls took how many microseconds, by kind and name."""
    numbers: dict[tuple[str, str], float] = {}
    calls: dict[tuple[str, str], tuple[float, float]] = {}
    chapter = ""
    for line in text.splitlines():
        # Behind some a remark follows, such as that a round of backfill goes on.
        title = line.partition(" (")[0].rstrip(": ")
        if title in _CHAPTERS:
            chapter = _CHAPTERS[title]
        elif found := _RPC.match(line):
            calls[chapter, found[1]] = (float(found[2]), float(found[3]))
        elif found := _LINE.match(line):
            numbers.setdefault((chapter, found[1]), float(found[2]))
        elif found := _SINCE.match(line):
            numbers["", "since"] = float(found[1])
    return numbers, calls


def metrics(text: str, _: float) -> list[Metric]:
    """Threads, queues, cycles, calls. Raises ValueError when it is not sdiag's output."""
    numbers, calls = parse(text)
    if ("", "Server thread count") not in numbers:
        raise ValueError(text[:80])
    return [*_of_numbers(numbers), *_of_calls(calls)]


def _of_numbers(numbers: _Numbers) -> Iterator[Metric]:
    for chapter, line, name, factor, meaning in _GAUGES:
        if (chapter, line) in numbers:
            yield gauge(name, meaning, [], {(): numbers[chapter, line] * factor})
    for chapter, line, name, meaning in _COUNTERS:
        if (chapter, line) in numbers:
            yield counter(name, meaning, [], {(): numbers[chapter, line]})
    if ("", "since") in numbers:
        yield gauge(
            "slurm_scheduler_statistics_start_timestamp_seconds",
            "Since when slurmctld has counted.",
            [],
            {(): numbers["", "since"]},
        )


def _of_calls(calls: _Calls) -> Iterator[Metric]:
    for kind, word in (("type", "type"), ("user", "user")):
        chosen = {(name,): both for (chapter, name), both in calls.items() if chapter == kind}
        yield counter(
            f"slurm_rpc_{word}_requests_total" if kind == "user" else "slurm_rpc_requests_total",
            f"Calls that slurmctld answered, by {word}.",
            [word],
            {key: both[0] for key, both in chosen.items()},
        )
        yield counter(
            f"slurm_rpc_{word}_seconds_total" if kind == "user" else "slurm_rpc_seconds_total",
            f"How long slurmctld took to answer, by {word}.",
            [word],
            {key: both[1] * _MICROSECONDS for key, both in chosen.items()},
        )

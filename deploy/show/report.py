"""The report of a recorded run: the same journal always gives the same report."""

from datetime import UTC, datetime
from typing import Any

from deploy.judge.summary import Summary, summarize
from deploy.run.journal import RecordedRun
from deploy.show.summary import summary_json
from deploy.show.text import duration, failure_lines, host_lines, unfinished_lines, verdict_line


def summary_of(run: RecordedRun) -> Summary:
    """What the run came to."""
    return summarize(run.events(), run.hosts, started=run.started, is_complete=run.is_complete)


def as_json(run: RecordedRun) -> dict[str, Any]:
    """The report for programs."""
    return {**summary_json(summary_of(run)), "run": {"id": run.id, **run.metadata}}


def as_text(run: RecordedRun) -> str:
    """The report for a terminal."""
    summary = summary_of(run)
    sections = [
        [line for failure in summary.failures for line in failure_lines(failure)],
        list(summary.trouble),
        host_lines(summary),
        unfinished_lines(summary),
        _slowest_lines(summary),
        [verdict_line(summary)],
    ]
    head = f"run {run.id}, {started_at(summary)}: {command_of(run)}"
    return "\n\n".join([head, *("\n".join(lines) for lines in sections if lines)])


def as_list_line(run: RecordedRun) -> str:
    """The run on one line, for a list of runs."""
    summary = summary_of(run)
    hosts = f"{len(summary.hosts)} host{'s' * (len(summary.hosts) != 1)}"
    figures = f"{summary.changed:>5} changed  {duration(summary.seconds):>12}  {hosts}"
    return f"{run.id}  {summary.outcome.value:<11} {figures}  {command_of(run)}"


def command_of(run: RecordedRun) -> str:
    """The command line that started the run."""
    return " ".join(["deploy", *(str(word) for word in run.metadata.get("arguments", ()))])


def started_at(summary: Summary) -> str:
    """When the run began, in UTC."""
    return datetime.fromtimestamp(summary.started, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _slowest_lines(summary: Summary) -> list[str]:
    if not summary.slowest:
        return []
    width = max(len(slow.task) for slow in summary.slowest)
    lines = [f"{slow.seconds:7.1f} s  {slow.task:<{width}}  {slow.host}" for slow in summary.slowest]
    return ["slowest tasks:", *lines]

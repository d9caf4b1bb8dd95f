"""The report of a recorded run: the same journal always gives the same report."""

from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined

from deploy.run.events import HostResult
from deploy.run.journal import RecordedRun
from deploy.show.summary import Summary, summarize
from deploy.show.text import VERDICTS, failure_lines, host_lines, printable, task_name

_WIDTH = 1000.0
_SHORTEST_BAR = 1.0


def summary_of(run: RecordedRun) -> Summary:
    """Adds up what the journal holds."""
    events = list(run.events())
    started = float(run.metadata.get("started", events[0].time if events else 0.0))
    last = events[-1].time if events else started
    ended = float(run.metadata.get("ended", last))
    return summarize(
        events,
        run.metadata.get("hosts", ()),
        interrupted=run.interrupted,
        seconds=max(0.0, ended - started),
        code=int(run.metadata.get("code", 0)),
    )


def as_json(run: RecordedRun) -> dict[str, Any]:
    """The report for programs."""
    return {**summary_of(run).to_json(), "run": dict(run.metadata)}


def as_text(run: RecordedRun) -> str:
    """The report for a terminal."""
    summary = summary_of(run)
    lines = [
        f"run {run.metadata.get('id', '')}: deploy {' '.join(run.metadata.get('arguments', []))}".rstrip(),
        "",
    ]
    for failure in summary.failures:
        lines += failure_lines(failure)
    if summary.failures:
        lines.append("")
    lines += host_lines(summary)
    lines += ["", "slowest tasks:"]
    lines += [f"  {seconds:7.1f} s  {printable(task)}" for task, seconds in summary.slowest]
    lines += ["", f"{VERDICTS[summary.outcome]}: {summary.changed} changes in {summary.seconds:.1f} s"]
    return "\n".join(lines)


def as_html(run: RecordedRun) -> str:
    """One self-contained page: outcome, failures, the timeline of every host, the slowest tasks."""
    summary = summary_of(run)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        resources.files("deploy.show").joinpath("report.html.j2").read_text(encoding="utf-8")
    )
    return template.render(
        summary=summary,
        verdict=VERDICTS[summary.outcome],
        run=run.metadata,
        failures=[(result, printable(result.message)) for result in summary.failures],
        timeline=_timeline(summary, float(run.metadata.get("started", 0.0))),
        width=_WIDTH,
    )


def _timeline(summary: Summary, started: float) -> list[dict[str, Any]]:
    """Per host its bars: where a task began and how long it took, on a scale of ``_WIDTH`` for the run."""
    scale = _WIDTH / max(summary.seconds, 0.001)
    by_host: dict[str, list[HostResult]] = {name: [] for name in summary.hosts}
    for result in summary.results:
        by_host[result.host].append(result)
    return [
        {
            "host": host,
            "bars": [
                {
                    "x": max(0.0, round((result.time - result.seconds - started) * scale, 1)),
                    "width": max(_SHORTEST_BAR, round(result.seconds * scale, 1)),
                    "status": result.status.value,
                    "title": f"{task_name(result)}: {result.status.value}, {result.seconds:.2f} s",
                }
                for result in results
            ],
        }
        for host, results in by_host.items()
    ]

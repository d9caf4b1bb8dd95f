"""The report as one self-contained HTML page."""

from deploy.run.journal import RecordedRun
from deploy.show import timeline
from deploy.show.html import render
from deploy.show.report import command_of, started_at, summary_of
from deploy.show.text import EXPLANATIONS, duration


def as_html(run: RecordedRun) -> str:
    """Outcome, failures, figures and timeline of the hosts; the page loads nothing from elsewhere."""
    summary = summary_of(run)
    return render(
        "page.html.j2",
        summary=summary,
        explanation=EXPLANATIONS[summary.outcome],
        run=run,
        command=command_of(run),
        started=started_at(summary),
        duration=duration,
        lanes=timeline.lanes(summary),
        ticks=timeline.ticks(summary),
        phases=timeline.phases(summary),
        width=timeline.WIDTH,
    )

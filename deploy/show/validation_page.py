"""A validation as one self-contained HTML page, with bars for what was measured."""

from deploy.show.html import render
from deploy.show.text import duration
from deploy.show.validation import verdict_line
from deploy.validate.comparison import Comparison
from deploy.validate.record import began_at
from deploy.validate.result import Judged, Outcome, Result, Validation


def as_html(validation: Validation, since: Comparison | None = None) -> str:
    """Verdict, what changed since, checks and measurements; the page loads nothing from elsewhere."""
    return render(
        "validation.html.j2",
        validation=validation,
        verdict=verdict_line(validation),
        since=since,
        began=began_at(validation),
        duration=duration,
        outcomes=list(Outcome),
        bars={check.check: bars(check) for check in validation.checks},
    )


def bars(check: Judged) -> list[tuple[Result, float]]:
    """The measurements of a check with their share of the largest, the largest first."""
    measured = [result for result in check.results if result.value is not None and result.where]
    largest = max((result.value or 0.0 for result in measured), default=0.0)
    shares = [(result, (result.value or 0.0) / largest if largest else 0.0) for result in measured]
    return sorted(shares, key=lambda pair: -pair[1])

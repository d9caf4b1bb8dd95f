"""A validation as one self-contained HTML page, with bars for what was measured."""

from deploy.show.html import render
from deploy.show.text import duration
from deploy.show.validation import began_at, verdict_line
from deploy.validate.verdict import Judged, Outcome, Validation, Verdict


def as_html(validation: Validation) -> str:
    """Verdict, checks and measurements; the page loads nothing from elsewhere."""
    return render(
        "validation.html.j2",
        validation=validation,
        verdict=verdict_line(validation),
        began=began_at(validation),
        duration=duration,
        outcomes=list(Outcome),
        bars={check.check: bars(check) for check in validation.checks},
    )


def bars(check: Judged) -> list[tuple[Verdict, float]]:
    """The measurements of a check with their share of the largest, the largest first."""
    measured = [verdict for verdict in check.verdicts if verdict.value is not None and verdict.where]
    largest = max((verdict.value or 0.0 for verdict in measured), default=0.0)
    shares = [(verdict, (verdict.value or 0.0) / largest if largest else 0.0) for verdict in measured]
    return sorted(shares, key=lambda pair: -pair[1])

"""What rounds of kills came to; docs/generators/reliability.py loads this file and tests/spans.py alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.spans import span

KILLS_HEAD = (
    "killed",
    "rounds",
    "of them with all of its processes",
    "killed after (s)",
    "s until typed again it had converged",
    "with trouble",
)


@dataclass(frozen=True)
class Found:
    """A round: ``moment`` is when it was killed, in seconds, unless it had ended before (``is_killed``)."""

    kind: str
    moment: float
    is_killed: bool
    all_of_them: bool
    well: float
    """Seconds that the same took when it was typed again, until it succeeded."""
    troubles: list[str]


def kills_table(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """A row for each kind of run; rounds whose run had ended before it could be killed do not count."""
    for part in parts.values():
        rounds = [one for one in part["rounds"] if one["is_killed"]]
        if rounds:
            yield (
                part["what"],
                str(len(rounds)),
                str(sum(one["all_of_them"] for one in rounds)),
                span(one["moment"] for one in rounds),
                span(one["well"] for one in rounds),
                str(sum(bool(one["troubles"]) for one in rounds)),
            )

"""What rounds of kills came to; docs/generators/reliability.py loads this file alone."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
                _span([one["moment"] for one in rounds]),
                _span([one["well"] for one in rounds]),
                str(sum(bool(one["troubles"]) for one in rounds)),
            )


def _span(values: Sequence[float]) -> str:
    middle = f"{statistics.median(values):.0f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.0f} to {max(values):.0f})"

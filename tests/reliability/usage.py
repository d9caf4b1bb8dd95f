"""What accounting and fair share have of the time that jobs ran; docs/generators loads this."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tests.spans import span

USAGE_HEAD = (
    "fault",
    "CPU s that jobs ran which ended",
    "of it not accounted",
    "accounted beyond it, s of a job",
    "fair share, % beside what is accounted",
)
_ROUNDING = 2.0
"""Seconds: a row begins and ends at whole ones, by a clock that lags where ticks come late (1.2 s seen)."""


def usage_of(
    ended: Iterable[tuple[str, float]],
    rows: Iterable[tuple[str, str, int]],
    fair_share: int,
) -> dict[str, Any]:
    """``ended`` are the seconds of each run that came to its end, by the names of jobs, which have one CPU.

    ``rows`` have name, state and CPU seconds, one for each start; ``fair_share`` is what sshare counts.
    """
    ran: defaultdict[str, list[float]] = defaultdict(list)
    for name, seconds in ended:
        ran[name].append(seconds)
    accounted: defaultdict[str, list[int]] = defaultdict(list)
    for name, _state, seconds in rows:
        accounted[name].append(seconds)
    # Where a run was cut off nobody knows how long it was, but for the row that it has.
    beyond = [
        accounted[name][0] - runs[0] for name, runs in ran.items() if len(runs) == len(accounted[name]) == 1
    ]
    less = {name: sum(runs) - sum(accounted[name]) for name, runs in ran.items()}
    return {
        "ran": round(sum(map(sum, ran.values()))),
        "accounted": sum(map(sum, accounted.values())),
        "less": {
            name: round(seconds, 1)
            for name, seconds in sorted(less.items())
            if seconds > _ROUNDING * len(ran[name])
        },
        "beyond": [round(statistics.median(beyond), 1), round(max(beyond), 1)] if beyond else None,
        "fair_share": fair_share,
    }


def usage_table(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """A row for each fault."""
    for name, part in parts.items():
        rounds = [one["usage"] for one in part["rounds"]]
        less = [one["less"] for one in rounds]
        yield (
            f"`{name}`",
            str(sum(one["ran"] for one in rounds)),
            _less(less),
            _beyond([one["beyond"] for one in rounds if one["beyond"]]),
            span(round(100 * (one["fair_share"] / one["accounted"] - 1)) for one in rounds),
        )


def _less(rounds: Sequence[Mapping[str, float]]) -> str:
    found = [seconds for one in rounds for seconds in one.values()]
    return f"{sum(found):.0f}, of {len(found)} jobs" if found else "0"


def _beyond(rounds: Sequence[Sequence[float]]) -> str:
    if not rounds:
        return "-"
    usual = statistics.median(one[0] for one in rounds)
    return f"{round(usual)}, at most {round(max(one[1] for one in rounds))}"

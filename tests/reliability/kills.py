"""What came of runs that were killed, as a table; docs/generators/reliability.py loads this file alone."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

KILL_HEAD = (
    "killed",
    "kills",
    "s after its begin",
    "ended before",
    "files read",
    "not whole",
    "locks left",
    "left running",
    "temporary files left",
    "next run failed",
    "s of the next run",
    "not as it should be after it",
)
_LISTS = ("half", "locks", "processes", "forgotten")


def kill_table(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """A row for each kind of run, in the order in which they are kept."""
    for name, part in parts.items():
        rounds = part["rounds"]
        killed = [one for one in rounds if not one["was_over"]]
        followed = [one for one in rounds if one["next"] is not None]
        half, locks, processes, forgotten = (str(sum(len(one[key]) for one in rounds)) for key in _LISTS)
        yield (
            f"`{name}`: {part['what']}",
            str(len(killed)),
            _span(one["after"] for one in killed),
            str(len(rounds) - len(killed)),
            str(sum(one["files"] for one in rounds)),
            half,
            locks,
            processes,
            forgotten,
            str(sum(one["failed"] for one in followed)),
            _span(one["next"] for one in followed),
            "; ".join(sorted({why for one in rounds for why in one["wrong"]})) or "nothing",
        )


def is_kill_fault(one: Mapping[str, Any]) -> bool:
    """Whether something is not as it has to be after a kill and the next run."""
    return bool(any(one[key] for key in _LISTS) or one["failed"] or one["wrong"])


def _span(values: Iterable[float]) -> str:
    found = sorted(values)
    return f"{found[0]:.0f} to {found[-1]:.0f}" if found else ""

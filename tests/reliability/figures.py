"""What a round of a fault came to; docs/generators/reliability.py loads this and tests/spans.py alone."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.spans import span

HEAD = (
    "fault",
    "rounds",
    "s without submission",
    "s without accounting",
    "s until another one led",
    "jobs taken",
    "lost",
    "started again",
    "completed twice",
    "rows missing",
    "two wrote at once",
    "by hand",
)


_A_SAVE_TAKES = 2
"""Seconds from when slurmctld looks at its queue until the file has been written."""


@dataclass(frozen=True)
class Asked:
    """Something asked of the cluster: when, when that was over, and what came; empty is no success."""

    number: int
    began: float
    ended: float
    came: str


@dataclass(frozen=True)
class Fates:
    """What became of the jobs: names are those that the test gave, one for each submission."""

    lost: Sequence[str]
    """Taken, and never completed."""
    again: Sequence[str]
    """Begun more than once."""
    twice: Sequence[str]
    """Completed more than once."""
    missing: Sequence[str]
    """Completed, without a row of accounting that says so."""


def longest_without(asked: Iterable[Asked], since: float, until: float) -> float:
    """The longest time from one success to the next, among those of a time, its ends included."""
    moments = sorted(one.ended for one in asked if one.came and since <= one.ended <= until)
    edges = [since, *moments, until]
    return max(after - before for before, after in pairwise(edges))


def fates(
    taken: Collection[str],
    begun: Sequence[str],
    ended: Sequence[str],
    rows: Collection[tuple[str, str]],
) -> Fates:
    """``begun`` and ``ended`` are what jobs wrote, ``rows`` names and states in accounting."""
    begins, ends = Counter(begun), Counter(ended)
    completed = {name for name, state in rows if state == "COMPLETED"}
    return Fates(
        lost=sorted(set(taken) - set(ends)),
        again=sorted(name for name, times in begins.items() if times > 1),
        twice=sorted(name for name, times in ends.items() if times > 1),
        missing=sorted(set(ends) - completed),
    )


def table(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """The rows of all faults, in the order in which they are kept."""
    for name, part in parts.items():
        rounds = part["rounds"]
        yield (
            f"`{name}`: {part['what']}",
            str(len(rounds)),
            span(one["submission"] for one in rounds),
            span(one["accounting"] for one in rounds),
            _taken_over(rounds),
            str(sum(one["taken"] for one in rounds)),
            _lost(rounds),
            *(str(sum(len(one[key]) for one in rounds)) for key in ("again", "twice", "missing")),
            _at_once(rounds),
            "; ".join(sorted({hand for one in rounds for hand in one["by_hand"]})) or "nothing",
        )


def _taken_over(rounds: Sequence[Mapping[str, Any]]) -> str:
    """When another slurmctld first wrote to the state than the one that did when the fault came."""
    first = [
        next((began for host, began, _ in one["led"] if host != one["led"][0][0]), None) for one in rounds
    ]
    known = [when for when in first if when is not None]
    return span(known) if known else "-"


def _lost(rounds: Sequence[Mapping[str, Any]]) -> str:
    ages = [age for one in rounds for age in one["lost"].values()]
    if not ages:
        return "0"
    known = [one for one in rounds if "unsaved" in one]
    saved = sum(name in lost_though_saved(one) for one in known for name in one["lost"])
    of_these = f", {saved} of them saved" if saved else ""
    return f"{len(ages)}, taken {-max(ages):.1f} to {-min(ages):.1f} s before it{of_these}"


def unsaved(taken: Mapping[str, float], saved: float, caused: float) -> list[str]:
    """The jobs that Slurm took after it had last saved its queue, and until the fault was there."""
    return sorted(name for name, when in taken.items() if saved - _A_SAVE_TAKES <= when <= caused)


def lost_though_saved(one: Mapping[str, Any]) -> list[str]:
    """The jobs that a round lost, or rows or time of them, although slurmctld had saved that it had them."""
    return sorted({*one["lost"], *one["missing"], *one["usage"]["less"]} - {*one["unsaved"]})


def _at_once(rounds: Sequence[Mapping[str, Any]]) -> str:
    known = [one["at_once"] for one in rounds if one["at_once"] is not None]
    if len(known) < len(rounds):
        return "not watched"
    return "; ".join(sorted({host for hosts in known for host in hosts})) or "no"

"""Users' commands and what came of them: as lines while they are typed, as a table, as data for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from deploy.judge.user_outcome import Outcome, Verdict, changes

_MARKS = {Verdict.AS_EXPECTED: "ok", Verdict.DIFFERENT: "DIFFERENT", Verdict.LEFT_OUT: "left out"}
_HEADER = ("command", "user", "came out", "seen", "seconds")


def line(outcome: Outcome) -> str:
    """One command, when it has come out."""
    mark = f"{_MARKS[outcome.verdict]:<9}"
    why = f": {'; '.join(outcome.why)}" if outcome.why else f" ({outcome.seen}, {outcome.seconds:.1f} s)"
    return f"{mark}  {outcome.id}{why}"


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """All commands, and the verdict."""
    rows = [_HEADER, *(_row(outcome) for outcome in outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        yield "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    yield verdict(outcomes)


def _row(outcome: Outcome) -> tuple[str, ...]:
    seen, seconds = (
        ("", "") if outcome.verdict is Verdict.LEFT_OUT else (outcome.seen, f"{outcome.seconds:.1f}")
    )
    return (outcome.id, outcome.user, _MARKS[outcome.verdict], seen, seconds)


def verdict(outcomes: Sequence[Outcome]) -> str:
    """All commands in one line."""
    counts = {kind: sum(outcome.verdict is kind for outcome in outcomes) for kind in Verdict}
    said = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    return f"{len(outcomes)} command{'s' * (len(outcomes) != 1)}: {said}"


def changed(before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What changed since another time; both by command, as in the file for programs."""
    found = changes(before, after)
    if not found:
        yield "nothing came out in another way than before"
    for change in found:
        yield f"changed: {change.id}: before {change.before}; now {change.after}"


def as_json(about: Mapping[str, Any], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything for programs, and to compare with another time."""
    return {**about, "commands": [asdict(outcome) for outcome in outcomes]}

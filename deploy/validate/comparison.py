"""What a validation found otherwise than an earlier one, by check and host."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from deploy.validate.baseline import COMPARED
from deploy.validate.result import Outcome, Result, Validation

_NOTICED = 0.1
"""A measurement that differs by less than this share is the same."""

Key = tuple[str, str]
"""A check, and where it looked."""


class Kind(StrEnum):
    """In which way a result differs."""

    WORSE = "worse"
    SLOWER = "slower"
    GONE = "not measured"
    FASTER = "faster"
    BETTER = "better"


@dataclass(frozen=True)
class Change:
    """A check that came out otherwise on ``where`` (empty: the whole site); what was seen then and now."""

    kind: Kind
    check: str
    where: str
    before: str
    now: str


@dataclass(frozen=True)
class Comparison:
    """All changes since the validation that began at ``at``, in UTC; the worst first.

    ``compared`` are the checks and hosts that both have looked at.
    """

    at: str
    compared: int
    changes: tuple[Change, ...]


def compare(earlier: Mapping[str, Any], now: Validation) -> Comparison:
    """Compares with what `record.as_data` wrote; of what only one of both looked at, nothing is said."""
    before = dict(_earlier(earlier))
    found = {(check.check, result.where): result for check in now.checks for result in check.results}
    both = [key for key in found if key in before and found[key].outcome is not Outcome.NOT_APPLICABLE]
    changes = [change for key in both for change in _change(key, before[key], found[key])]
    order = list(Kind)
    changes.sort(key=lambda change: order.index(change.kind))
    return Comparison(str(earlier.get("at", "")), len(both), tuple(changes))


def _earlier(data: Mapping[str, Any]) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    for check in data.get("checks", ()):
        for verdict in check.get("verdicts", ()):
            if verdict.get("outcome") in {Outcome.PASSED, Outcome.FAILED}:
                yield (check["check"], verdict["where"]), verdict


def _change(key: Key, before: Mapping[str, Any], now: Result) -> Iterator[Change]:
    then = Outcome(before["outcome"])
    kind = {
        (Outcome.PASSED, Outcome.FAILED): Kind.WORSE,
        (Outcome.PASSED, Outcome.NOT_MEASURED): Kind.GONE,
        (Outcome.FAILED, Outcome.PASSED): Kind.BETTER,
        (Outcome.PASSED, Outcome.PASSED): _pace(key[0], before, now),
    }.get((then, now.outcome))
    if kind is not None:
        yield Change(kind, *key, str(before.get("message", "")), now.message)


def _pace(check: str, before: Mapping[str, Any], now: Result) -> Kind | None:
    value, unit = before.get("value"), before.get("unit")
    if check not in COMPARED or not value or not now.value or unit != now.unit:
        return None
    longer = value / now.value if now.is_rate else now.value / value
    if longer > 1 + _NOTICED:
        return Kind.SLOWER
    return Kind.FASTER if longer < 1 / (1 + _NOTICED) else None

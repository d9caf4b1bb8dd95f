"""The differences that a module's result brings along."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deploy.run.message import clean, one_line

_LONGEST_SIDE = 50_000


@dataclass(frozen=True, slots=True)
class Diff:
    """One change of a file or a state, before and after."""

    before: str
    after: str
    before_header: str = ""
    after_header: str = ""


def diffs(result: Mapping[str, Any]) -> tuple[Diff, ...]:
    """Every real difference of a result and of its loop items; none where it is censored."""
    return tuple(diff for part in _parts(result) if (diff := _diff(part)))


def _parts(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    items = result.get("results")
    for holder in (result, *(items if isinstance(items, list) else ())):
        found = holder.get("diff") if isinstance(holder, Mapping) else None
        for part in found if isinstance(found, list) else [found]:
            if isinstance(part, Mapping):
                yield part


def _diff(part: Mapping[str, Any]) -> Diff | None:
    if "prepared" in part:
        return Diff("", _side(part["prepared"])) if part["prepared"] else None
    before, after = _side(part.get("before", "")), _side(part.get("after", ""))
    if before == after:
        return None
    headers = (one_line(part.get("before_header") or ""), one_line(part.get("after_header") or ""))
    return Diff(before, after, *headers)


def _side(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, indent=2, sort_keys=True, default=str)
    return clean(text)[:_LONGEST_SIDE]

"""Filter: compute nodes that are alike share a line of Slurm's files, as ranges of names and addresses."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

_NUMBERED = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL)


def in_ranges(nodes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The nodes, those with the same settings as one, in the order in which the first of them came.

    ``name`` and ``address`` of such a one are Slurm's hostlists, with equally many entries in the same order.
    """
    alike: dict[str, list[Mapping[str, Any]]] = {}
    for node in nodes:
        rest = {key: value for key, value in node.items() if key not in {"name", "address"}}
        alike.setdefault(json.dumps(rest, sort_keys=True, default=str), []).append(node)
    return [_as_one(sorted(group, key=_order)) for group in alike.values()]


def _as_one(group: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    # Not ClusterShell's sets: the addresses have to keep the order of the names.
    return {**group[0], **{key: hostlist([str(node[key]) for node in group]) for key in ("name", "address")}}


def _order(node: Mapping[str, Any]) -> tuple[str, str, int]:
    before, number, after = _parts(node["name"])
    return before, after, int(number or 0)


def _parts(word: str) -> tuple[str, str, str]:
    """What is before the last number of a word, the number, and what is behind it."""
    found = _NUMBERED.fullmatch(word)
    return (found[1], found[2], found[3]) if found else (word, "", "")


def hostlist(words: Sequence[str]) -> str:
    """Words in their order, neighbours that count up by one as a range: ``n[1-3],n7``."""
    return ",".join(_range(first, last) for first, last in _runs([*words]))


def _runs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    start = 0
    for end, word in enumerate(words, 1):
        if end == len(words) or not _follows(word, words[end]):
            yield words[start], word
            start = end


def _follows(word: str, following: str) -> bool:
    before, number, after = _parts(word)
    before_next, next_number, after_next = _parts(following)
    # Before 23.11 Slurm reads no range that has something behind it, and the manuals of all forbid it.
    if not number or not next_number or after or after_next or before != before_next:
        return False
    # Slurm counts with as many digits as the first number has; without leading zeros there may be more.
    is_counted = len(number) == len(next_number) or not number.startswith("0")
    return is_counted and int(number) + 1 == int(next_number)


def _range(first: str, last: str) -> str:
    before, number, _ = _parts(first)
    return first if first == last else f"{before}[{number}-{_parts(last)[1]}]"


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> Mapping[str, Callable[..., Any]]:
        """The filters by name."""
        return {"in_ranges": in_ranges}

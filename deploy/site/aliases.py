"""A few words that stand for so many values that nobody could read them.

Aliases of YAML (``*name``), where each list repeats the one before ("billion laughs"), and ranges of hosts.
"""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from deploy.errors import Finding
from deploy.site.origin import inventory_files, lines, shown

_MOST_VALUES = 100_000
"""Ansible takes half a second for as many."""
TOO_MANY = f"its aliases (*NAME) come to more than {_MOST_VALUES:,} values"
_OF_GROUPS_AND_HOSTS = ("group_vars", "host_vars")
_READ_BY_ANSIBLE = frozenset({"", ".yml", ".yaml", ".json"})
_RANGE = re.compile(r"\[([0-9]{1,99}):([0-9]{1,99})(?::([0-9]{1,99}))?\]")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_aliases(inventory: Path, directory: Path, *others: str) -> Iterator[Finding]:
    """The files that Ansible is about to read, with ``others`` of the site, and have too many."""
    files = [*inventory_files(inventory), *(directory / name for name in others)]
    for name in _OF_GROUPS_AND_HOSTS:
        files += sorted((directory / name).rglob("*"))
    for path in files:
        if path.suffix in _READ_BY_ANSIBLE and path.is_file() and (line := _line_of_excess(path)):
            yield Finding(
                f"{shown(str(path))}:{line}",
                "too-many-aliases",
                f"this cannot be read: {TOO_MANY}",
                "write the values themselves, or fewer of them",
            )


def check_ranges(inventory: Path) -> Iterator[Finding]:
    """Ranges of hosts (``node[1:99999999]``), which Ansible would write out before anything looks at them."""
    for path in inventory_files(inventory):
        for number, line in enumerate(lines(path), 1):
            words = line.partition("#")[0].split()
            hosts = math.prod(map(_length, _RANGE.finditer(words[0]))) if words else 0
            if hosts > _MOST_VALUES:
                yield Finding(
                    f"{shown(str(path))}:{number}",
                    "range-too-long",
                    f"{words[0]:.60} means {hosts:,} hosts",
                    "write the numbers of hosts that there are",
                )


def _length(found: re.Match[str]) -> int:
    """How many hosts a range means; one that Ansible refuses none."""
    first, last, step = (int(text or 1) for text in found.groups())
    return max(0, last - first + 1) // max(step, 1)


def line_of_excess(text: str | bytes) -> int | None:
    """The line of the alias with which there are too many; None where there are not, or it is no YAML."""
    try:
        return _count(text)
    except (yaml.YAMLError, UnicodeDecodeError):
        return None


def _line_of_excess(path: Path) -> int | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    # Most files have none, and parsing takes longer than looking.
    return line_of_excess(content) if b"&" in content and b"*" in content else None


def _count(text: str | bytes) -> int | None:
    sizes: dict[str, int] = {}
    open_collections: list[tuple[str | None, int]] = []
    values = repeated = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            # What is not complete yet has no size: it would hold itself, which Ansible refuses.
            stands_for = sizes.get(str(event.anchor), 1)
            values += stands_for
            repeated += stands_for
            if repeated > _MOST_VALUES:
                return event.start_mark.line + 1 if event.start_mark else 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_collections.append((event.anchor, values))
            values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_collections.pop()
            if anchor:
                sizes[anchor] = values - before
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            if event.anchor:
                sizes[event.anchor] = 1
    return None

"""Whether files are whole: what a killed run left, beside what was before it and what came of the next."""

import json
from collections.abc import Iterator, Mapping

import yaml

_LINES_MAY_END_EARLY = "events.jsonl"
"""Written by appending; who reads it leaves out a last line that was cut short."""
_TEMPORARY = (".ansible_tmp", ".deploy-tmp")


def unreadable(path: str, content: str) -> str:
    """Why a file cannot be read as what its name says; empty where it can, or the name says nothing."""
    try:
        if path.endswith(".json"):
            json.loads(content)
        elif path.endswith(".jsonl"):
            lines = content.splitlines()
            whole = lines if content.endswith("\n") else lines[:-1]
            for line in whole if path.endswith(_LINES_MAY_END_EARLY) else lines:
                json.loads(line)
        elif path.endswith((".yml", ".yaml")):
            yaml.safe_load(content)
    except (ValueError, yaml.YAMLError) as problem:
        return str(problem).splitlines()[0]
    return ""


def is_half(before: str | None, left: str, after: str | None) -> bool:
    """Whether what was left is a beginning of what was before, or comes afterwards, and none of the two."""
    wholes = [whole for whole in (before, after) if whole is not None]
    return left not in wholes and any(whole.startswith(left) for whole in wholes)


def halves(
    before: Mapping[str, str], left: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The files that are not whole, and why."""
    for path, content in left.items():
        if why := unreadable(path, content):
            yield path, why
        elif not path.endswith(".jsonl") and is_half(before.get(path), content, after.get(path)):
            yield path, f"{len(content)} bytes of {len(after.get(path) or before.get(path) or '')}"


def forgotten(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The names of temporary files that are still there when the next run is over."""
    return sorted(
        path
        for path in after.keys() - before.keys()
        if any(part in path.rpartition("/")[2] for part in _TEMPORARY)
    )

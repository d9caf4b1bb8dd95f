"""What roles declare to be looked at on their hosts, because no result of a task shows it."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from deploy.content import content_root, read_data, roles

_PYTHON = ("python3", "-IS", "-c")


def probes(role: str) -> tuple[dict[str, Any], ...]:
    """The questions of a role: each has a ``name`` and ``argv``, ``ignore`` are patterns of lines.

    The lines that one with ``must_be_empty`` prints are objections, each of which is named until it is gone.
    """
    return tuple(_asked(role, entry) for entry in declared(role) if "files" not in entry)


def files(role: str) -> tuple[str, ...]:
    """The files that a role writes in tasks whose results are hidden, there or not."""
    return tuple(path for entry in declared(role) for path in entry.get("files", ()))


@cache
def declared(role: str) -> tuple[dict[str, Any], ...]:
    """A role's ``meta/probes.yml``: named entries with ``argv``, ``files``, or a ``program``.

    A program is a module of Python's standard library alone among those of the role, or of all roles, that
    prints something when it is run by itself, with ``arguments`` if there are any.
    """
    path = roles() / role / "meta" / "probes.yml"
    if not path.exists():
        return ()
    return tuple(read_data(path))


def _asked(role: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    if "program" not in entry:
        return dict(entry)
    told = {key: value for key, value in entry.items() if key not in {"program", "arguments"}}
    text = program(role, entry["program"]).read_text(encoding="utf-8")
    return {**told, "argv": [*_PYTHON, text, *entry.get("arguments", ())]}


def program(role: str, name: str) -> Path:
    """The file of a role's program."""
    places = (roles() / role / "module_utils", content_root() / "playbooks" / "module_utils")
    return next(path for place in places if (path := place / f"{name}.py").exists())

"""docs/not-watched.md: what no record of a host knows, and why; from the roles themselves."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from deploy.run.host_records import OVERRIDES

_INTRODUCTION = """\
# What is not watched

`deploy status` names, and `deploy cluster` puts right, what was changed by hand of anything that a role
manages: content, mode, owner and presence of files, packages, services and how they were started, accounts,
mounts, kernel settings, files that override others from beside them, and what daemons were told where a role
can ask them. What follows is all that is left, made by `docs/generate.py` from the roles.
"""
_DIRECTORY = re.compile(r"/etc/[\w./-]*\.d(?=/[\w{])")
_ADDS = "A file there adds something and changes nothing that deploy's says, which is watched."
_EDITS = "Only some lines are deploy's. Another that changes is named, and stays: nobody knows what it was."
_SILENT = "They take no orders: what changes them is a file or an argument, and those are watched."
_EDITED = ("ansible.builtin.lineinfile", "ansible.builtin.blockinfile")


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The document."""
    roles = sorted(path for path in (root / "roles").iterdir() if path.is_dir())
    parts = [_INTRODUCTION, "| Role | Not watched | Why |\n|---|---|---|\n" + "".join(_rows(roles))]
    yield root / "docs" / "not-watched.md", "\n".join(parts)


def declared(role: Path) -> list[Mapping[str, Any]]:
    """A role's ``meta/unwatched.yml``.

    Entries have ``what`` and ``why``; ``running`` is true of one that says what its daemon can be told, and
    an entry with ``takes_orders: false`` says that there is nothing.
    """
    path = role / "meta" / "unwatched.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else []


def _rows(roles: list[Path]) -> Iterator[str]:
    for role in roles:
        for entry in declared(role):
            if "what" in entry:
                yield _row(role.name, entry["what"], entry["why"])
    yield from _computed(roles, _added_to, "files of others in", _ADDS)
    yield from _computed(roles, _edited_by, "other lines of", _EDITS)
    silent = [role.name for role in roles for entry in declared(role) if entry.get("takes_orders") is False]
    yield _row(", ".join(silent), "what their daemons were told while they ran", _SILENT)


def _computed(
    roles: list[Path], places: Callable[[Path], Iterator[str]], what: str, why: str
) -> Iterator[str]:
    """One row for what follows from the tasks of roles."""
    found = {role.name: dict.fromkeys(places(role)) for role in roles}
    named = dict.fromkeys(f"`{place}`" for of_role in found.values() for place in of_role)
    yield _row(", ".join(name for name in found if found[name]), f"{what} {', '.join(sorted(named))}", why)


def _added_to(role: Path) -> Iterator[str]:
    for text in _texts(role):
        yield from (place for place in _DIRECTORY.findall(text) if not OVERRIDES.search(place))


def _edited_by(role: Path) -> Iterator[str]:
    for text in _tasks(role):
        yield from _edited(text)


def _row(names: str, what: str, why: str) -> str:
    return f"| {names} | {what} | {why} |\n"


def _texts(role: Path) -> Iterator[str]:
    for place in ("tasks", "vars", "library", "module_utils"):
        for path in sorted((role / place).glob("*.[py]*")):
            if path.is_file():
                yield path.read_text(encoding="utf-8")


def _tasks(role: Path) -> Iterator[Any]:
    for path in sorted((role / "tasks").glob("*.yml")):
        yield yaml.safe_load(path.read_text(encoding="utf-8"))


def _edited(value: object) -> Iterator[str]:
    """The files that tasks change lines of, as far as they name them."""
    if isinstance(value, list):
        for part in value:
            yield from _edited(part)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if name in _EDITED and "{{" not in str(part.get("path", "{{")):
                yield str(part["path"])
            else:
                yield from _edited(part)

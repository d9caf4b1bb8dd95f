"""docs/not-watched.md: what no record of a host knows, and why; from the roles themselves."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
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
_KEEPS = "It is written where it is missing. What somebody wrote is named once, and stays: it was chosen."
_BLOCKS = ("block", "rescue", "always")
_FILES = "root_files"
_EDITED = ("ansible.builtin.lineinfile", "ansible.builtin.blockinfile")


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The document."""
    roles = sorted(path for path in (root / "roles").iterdir() if path.is_dir())
    parts = [_INTRODUCTION, "| Role | Not watched | Why |\n|---|---|---|\n" + "".join(_rows(roles))]
    yield root / "docs" / "not-watched.md", "\n".join(parts)


def declared(role: Path) -> list[Mapping[str, Any]]:
    """A role's ``meta/unwatched.yml``.

    Entries have ``what`` and ``why``; ``running`` is true of one that says what its daemon can be told, and
    an entry with ``takes_orders: false`` says that there is nothing. ``edited`` are the files whose lines
    the role changes by a name that its tasks compute, ``kept`` those that it writes where they are missing.
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
    yield from _computed(roles, kept_by, "the content of", _KEEPS)
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


def kept_by(role: Path) -> Iterator[str]:
    """The files that a role writes where they are missing (``force: false``), as it declares them."""
    yield from _declared(role, "kept", (path for text in _tasks(role) for path in _kept(text)))


def _edited_by(role: Path) -> Iterator[str]:
    """The files in which a role changes lines; those that its tasks only compute as it declares them."""
    paths = [path for text in _tasks(role) for path in _edited(text)]
    yield from (path for path in paths if "{{" not in path)
    yield from _declared(role, "edited", (path for path in paths if "{{" in path))


def _declared(role: Path, key: str, found: Iterable[str]) -> Iterator[str]:
    declared_here = [path for entry in declared(role) for path in entry.get(key, ())]
    if bool(declared_here) != bool([*found]):
        message = f"{role}/meta/unwatched.yml: its {key} are not what the tasks have"
        raise ValueError(message)
    yield from declared_here


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
    """The files that tasks change lines of, as they name them."""
    return (str(told["path"]) for name, told in _modules(value) if name in _EDITED)


def _kept(value: object) -> Iterator[str]:
    for _, told in _modules(value):
        if told.get("force") is False:
            yield str(told["dest"])
        yield from told.get("keeps", ())


def _modules(value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What tasks, also those of blocks, give their modules."""
    for task in value if isinstance(value, list) else ():
        for name, told in task.items():
            if name in _BLOCKS:
                yield from _modules(told)
            elif ("." in name or name == _FILES) and isinstance(told, Mapping):
                yield name, told

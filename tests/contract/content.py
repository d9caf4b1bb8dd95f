"""Reads roles the way the contract looks at them: variables, tasks, templates."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]

_BLOCKS = ("block", "rescue", "always")
_MODULE = re.compile(r"[a-z_]+\.[a-z_]+\.[a-z_]+")


class _Loader(yaml.SafeLoader):
    """Notes the line on which each mapping starts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        mapping = super().construct_mapping(node, deep=deep)
        mapping["__line__"] = node.start_mark.line + 1
        return mapping


@dataclass(frozen=True)
class Task:
    """One task of a role, with what it inherits from the blocks around it."""

    file: Path
    line: int
    words: Mapping[str, Any]
    tags: frozenset[str]
    no_log: bool

    @property
    def place(self) -> str:
        """Where it is, for a message."""
        return f"{self.file}:{self.line}"

    @property
    def module(self) -> str:
        """The collection's module that it calls; empty for a module of the project's own."""
        return next((word for word in self.words if _MODULE.fullmatch(word)), "")


def read_yaml(path: Path) -> Any:  # noqa: ANN401
    """A YAML file's content, None when there is no such file."""
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else None


def role_directories(root: Path = ROOT) -> list[Path]:
    """All roles."""
    return sorted(path.parent.parent for path in root.glob("roles/*/tasks/main.yml"))


def options(role: Path) -> dict[str, Any]:
    """The public variables that a role's argument_specs describes."""
    specs = read_yaml(role / "meta" / "argument_specs.yml") or {"argument_specs": {"main": {}}}
    return specs["argument_specs"]["main"].get("options") or {}


def tasks(role: Path) -> Iterator[Task]:
    """All tasks and handlers of a role, blocks unfolded."""
    for path in sorted([*role.glob("tasks/*.yml"), *role.glob("handlers/*.yml")]):
        loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader subclass
        yield from _unfolded(path, loaded or [], frozenset(), no_log=False)


def _unfolded(
    path: Path, listed: list[dict[str, Any]], tags: frozenset[str], *, no_log: bool
) -> Iterator[Task]:
    for entry in listed:
        own = entry.get("tags") or []
        here = tags | frozenset([own] if isinstance(own, str) else own)
        silent = no_log or entry.get("no_log") is True
        if "block" in entry:
            for part in _BLOCKS:
                yield from _unfolded(path, entry.get(part) or [], here, no_log=silent)
        else:
            yield Task(path, entry["__line__"], _without_lines(entry), here, silent)


def _without_lines(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _without_lines(inner) for key, inner in value.items() if key != "__line__"}
    return [_without_lines(inner) for inner in value] if isinstance(value, list) else value


def strings(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Every string inside a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)

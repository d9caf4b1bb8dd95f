"""Every reference of a finding that the code can make, found in the code itself."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.contract.content import ROOT

_SOURCES = ("deploy", "playbooks/module_utils", "playbooks/library", "playbooks/action_plugins")
_POSITION = {
    "Finding": 1,
    "error": 0,
    "warning": 0,
    "_finding": 0,
    "_error": 0,
    "_warning": 0,
    "_meaning": 1,
    "say": 0,
}
"""The functions that make findings, and where their reference stands among the arguments."""

_REFERENCE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")


def used(below: str | None = None) -> dict[str, str]:
    """Each reference with one place that uses it, ``file:line``, in all sources or below one directory."""
    found: dict[str, str] = {}
    for source in [below] if below else _SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            for reference, line in _in_file(path):
                found.setdefault(reference, f"{path.relative_to(ROOT)}:{line}")
    return found


def _in_file(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield from _of_call(path, node)
        # A reference that several meanings share is kept with its texts: ("python-missing", message, hint).
        elif isinstance(node, ast.Tuple) and len(node.elts) == 3:
            first = node.elts[0]
            if isinstance(first, ast.Constant) and _REFERENCE.fullmatch(str(first.value)):
                yield str(first.value), node.lineno


def _of_call(path: Path, call: ast.Call) -> Iterator[tuple[str, int]]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    position = _POSITION.get(name)
    if position is None:
        return
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    argument = call.args[position] if len(call.args) > position else named.get("reference")
    if isinstance(argument, ast.Constant):
        reference = str(argument.value)
        if _REFERENCE.fullmatch(reference):
            yield reference, call.lineno
        else:
            assert name not in {"Finding", "error"}, f"{path}:{call.lineno}: a reference is kebab-case"
    elif isinstance(argument, ast.Name | ast.Attribute) and name == "Finding":
        # One that passes on what it is given.
        last = argument.attr if isinstance(argument, ast.Attribute) else argument.id
        assert last == "reference", f"{path}:{call.lineno}: the reference is not written here"

"""Variables given on the command line (-e), in the forms that Ansible takes."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from deploy.errors import error
from deploy.site.aliases import TOO_MANY, line_of_excess
from deploy.site.schema import options

_PLAIN = re.compile(r"[\w.,/+-]*")


def read_extra_variables(texts: Sequence[str]) -> dict[str, Any]:
    """``key=value`` pairs, a JSON or YAML mapping, or ``@file`` with one; later ones win.

    Raises DeployError ``invalid-extra-variables``.
    """
    merged: dict[str, Any] = {}
    for text in texts:
        merged |= _read(text)
    return merged


def shown_extra_variables(text: str) -> str:
    """One value of -e as it may be shown: as it is, or what names no variable and is refused."""
    is_public = text.startswith("@") or all(_is_public(*said) for said in _read(text).items())
    return text if is_public else "NAME=VALUE"


def _is_public(name: str, value: object) -> bool:
    """Whether the name says of no secret, and the value can hold none, as addresses and commands can."""
    if not _PLAIN.fullmatch(str(value)):
        return False
    if name.startswith("ansible_"):
        return "pass" not in name
    return name in options() and not options()[name].secret


def _read(text: str) -> dict[str, Any]:
    try:
        if text.startswith("@"):
            content = _load(text, Path(text[1:]).read_text(encoding="utf-8"))
        elif text.lstrip().startswith(("{", "[")):
            content = _load(text, text)
        else:
            content = dict(word.split("=", 1) for word in shlex.split(text))
    except (OSError, ValueError, yaml.YAMLError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not key=value, JSON or YAML"
        raise _invalid(text, str(reason)) from None
    if not isinstance(content, dict):
        raise _invalid(text, "not a mapping")
    return content


def _load(argument: str, text: str) -> Any:  # noqa: ANN401 - YAML holds anything
    if line_of_excess(text):
        raise _invalid(argument, TOO_MANY)
    return yaml.safe_load(text)


def _invalid(text: str, reason: str) -> Exception:
    shown = text if text.startswith("@") else text.split("=", 1)[0]
    return error(
        "invalid-extra-variables",
        f"cannot read this value of -e: {reason}",
        where=shown,
        hint="write -e name=value, -e '{\"name\": value}' or -e @file.yml",
    )

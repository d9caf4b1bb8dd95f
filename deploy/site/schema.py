"""Every role's argument_specs as one schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from deploy.content import read_data, roles

OWN_PREFIX = "site_"
"""Variables with this prefix are the admin's own helpers and are never checked."""


@dataclass(frozen=True)
class Option:
    """One public variable: the role that owns it and its entry in that role's argument_specs."""

    role: str
    name: str
    spec: Mapping[str, Any]

    @cached_property
    def secret(self) -> bool:
        """Whether its value, or a part of it, must never be shown."""
        return is_secret(self.spec)


def is_secret(spec: Mapping[str, Any]) -> bool:
    """Whether a value with this specification, or a part of it, must never be shown."""
    return bool(spec.get("no_log")) or any(map(is_secret, (spec.get("options") or {}).values()))


@cache
def entry_points() -> Mapping[str, Mapping[str, Any]]:
    """Every role's entry point ``main`` of its argument_specs, by role name in order."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted(roles().glob("*/meta/argument_specs.yml")):
        found[path.parent.parent.name] = read_data(path)["argument_specs"]["main"]
    return found


@cache
def options() -> Mapping[str, Option]:
    """Every public variable of every role by name."""
    return {
        name: Option(role, name, spec)
        for role, entry in entry_points().items()
        for name, spec in (entry.get("options") or {}).items()
    }


def default_of(name: str) -> Any:  # noqa: ANN401 - a variable is whatever its role says
    """The default of a public variable; None where it has none."""
    return options()[name].spec.get("default")

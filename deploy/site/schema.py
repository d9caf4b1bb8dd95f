"""Every role's argument_specs as one schema, and a site's variables held against it."""

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from deploy.content import roles
from deploy.errors import Finding
from deploy.site.inventory import Site

OWN_PREFIX = "site_"
"""Variables with this prefix are the admin's own helpers and are never checked."""

_ANSIBLE_PREFIXES = ("ansible_", "inventory_")


@dataclass(frozen=True)
class Option:
    """One public variable: the role that owns it and its entry in that role's argument_specs."""

    role: str
    name: str
    spec: Mapping[str, Any]

    @property
    def secret(self) -> bool:
        """Whether its value must never be shown."""
        return bool(self.spec.get("no_log"))


@cache
def entry_points() -> Mapping[str, Mapping[str, Any]]:
    """Every role's entry point ``main`` of its argument_specs, by role name in order."""
    found: dict[str, Mapping[str, Any]] = {}
    for path in sorted(roles().glob("*/meta/argument_specs.yml")):
        specs = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"]
        found[path.parent.parent.name] = specs["main"]
    return found


@cache
def options() -> Mapping[str, Option]:
    """Every public variable of every role by name."""
    return {
        name: Option(role, name, spec)
        for role, entry in entry_points().items()
        for name, spec in (entry.get("options") or {}).items()
    }


def check_variables(site: Site) -> list[Finding]:
    """Unknown names, wrong types, choices and missing keys of all hosts' variables, each value once."""
    values: dict[tuple[str, str], tuple[Any, str]] = {}
    for host in site.cluster:
        for name, value in host.variables.items():
            if not name.startswith((*_ANSIBLE_PREFIXES, OWN_PREFIX)):
                values.setdefault((name, json.dumps(value, sort_keys=True, default=str)), (value, host.name))
    return [
        finding for (name, _), (value, host) in values.items() for finding in _check(site, host, name, value)
    ]


def _check(site: Site, host: str, name: str, value: object) -> Iterator[Finding]:
    where = site.hosts[host].where(name)
    option = options().get(name)
    if option is None:
        yield Finding(
            where,
            "unknown-variable",
            f"no role knows the variable {name!r}",
            _suggestion(name, options()) + f"; your own helper variables start with {OWN_PREFIX!r}",
        )
        return
    for message, hint in _misfits(name, option.spec, value):
        shown = f"{name}: the value is wrong (not shown: it is secret)" if option.secret else message
        yield Finding(where, "invalid-value", shown, hint)


def _misfits(path: str, spec: Mapping[str, Any], value: object) -> Iterator[tuple[str, str]]:
    """What is wrong with one value, as (message, hint), unknown keys of nested dicts included."""
    if _opaque(value):
        return
    kind = spec.get("type", "str")
    if (kind == "str" and isinstance(value, (dict, list))) or (kind == "int" and isinstance(value, bool)):
        # Ansible would quietly turn these into text and a number.
        yield f"{path} is a {type(value).__name__}, not of type {kind}", _described(spec)
        return
    unknown = list(_unknown_keys(path, spec, value))
    yield from unknown
    result = ArgumentSpecValidator({"value": {**spec, "required": False}}).validate({"value": value})
    if not unknown:
        for message in result.error_messages:
            yield (
                f"{path}: {message.replace(chr(39) + 'value' + chr(39), repr(path))}",
                _described(spec),
            )


def _described(spec: Mapping[str, Any]) -> str:
    description = spec["description"]
    return "it means: " + " ".join(description if isinstance(description, list) else [description]).strip()


def _unknown_keys(path: str, spec: Mapping[str, Any], value: object) -> Iterator[tuple[str, str]]:
    known = spec.get("options")
    if not known:
        return
    items = value if isinstance(value, list) else [value]
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        place = f"{path}[{index}]" if isinstance(value, list) else path
        for key, inner in item.items():
            if key not in known:
                yield f"{place} has no key {key!r}", _suggestion(str(key), known)
            else:
                yield from _unknown_keys(f"{place}.{key}", known[key], inner)


def _opaque(value: object) -> bool:
    """Whether a value is known only on the hosts: a template, or encrypted."""
    text = json.dumps(value, default=str)
    return "{{" in text or "__ansible_vault" in text


def _suggestion(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else "known names: see the README of each role"

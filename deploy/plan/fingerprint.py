"""A fingerprint for each host and phase: a hash of all that decides what the phase makes of the host.

That is the text of the phase's roles and of what all roles share, and the values of the variables that those
roles read, secrets included, of which nobody could tell a value from the hash.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from deploy.content import content_root
from deploy.plan.catalog import PHASES, Phase
from deploy.plan.wiring import WiredVariables
from deploy.site.inventory import Host, Site

_SHARED = ("library", "module_utils", "action_plugins")
_LEFT_OUT = frozenset({"__pycache__", "README.md"})
_WORD = re.compile(r"[A-Za-z_]\w*")
# With one of these a template can mean any variable without its name.
_MEANS_ANYTHING = frozenset({"vars", "hostvars", "lookup", "query", "q", "varnames", "groups"})


def fingerprints(site: Site, wired: WiredVariables, secrets: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """By host and phase, for every phase that a host takes part in."""
    members = {phase: {host.name for host in phase.hosts(site)} for phase in PHASES}
    return {
        host.name: {
            phase.name: _fingerprint(phase, _sources(host, own, wired, secrets), site) for phase in own
        }
        for host in site.cluster
        if (own := [phase for phase in PHASES if host.name in members[phase]])
    }


def _sources(
    host: Host, phases: Iterable[Phase], wired: WiredVariables, secrets: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Everything that can give a host's variable its value. Which one wins does not matter for a hash."""
    shared = [wired.shared.get(phase.group, {}) for phase in phases]
    return [host.variables, wired.by_host.get(host.name, {}), *shared, secrets]


def _fingerprint(phase: Phase, sources: list[Mapping[str, Any]], site: Site) -> str:
    known = {name for source in sources for name in source}
    prefixes = tuple(f"{role}_" for role in phase.roles)
    reads = {name for name in known if name.startswith(prefixes)}
    open_names = list(reads)
    while open_names:
        name = open_names.pop()
        for source in sources:
            mentioned = _mentioned(source.get(name), known) - reads
            reads |= mentioned
            open_names += mentioned
    values = {name: [source.get(name) for source in sources if name in source] for name in sorted(reads)}
    groups = site.groups if reads == known else {}
    told = [_of_files(content_root(), phase.roles), values, groups]
    return hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()


def _mentioned(value: object, known: set[str]) -> set[str]:
    """The variables that templates in a value speak of; all, where that cannot be known."""
    if isinstance(value, str):
        if "{{" not in value and "{%" not in value:
            return set()
        words = set(_WORD.findall(value))
        return known if words & _MEANS_ANYTHING else words & known
    if isinstance(value, Mapping):
        parts: Iterable[object] = [*value.keys(), *value.values()]
    else:
        parts = value if isinstance(value, list | tuple) else ()
    return {name for part in parts for name in _mentioned(part, known)}


@cache
def _of_files(root: Path, roles: tuple[str, ...]) -> str:
    """A hash of the files that do a phase's work."""
    places = [*(root / "playbooks" / name for name in _SHARED), *(root / "roles" / role for role in roles)]
    text = hashlib.sha256()
    for place in places:
        for path in sorted(place.rglob("*")):
            if path.is_file() and not _LEFT_OUT & set(path.parts):
                text.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return text.hexdigest()

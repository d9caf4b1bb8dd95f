"""A fingerprint for each host and phase: a hash of all that decides what the phase makes of the host.

That is the text of the phase's play, of its roles and of what all roles share, the versions of deploy and of
Ansible, and the values of the variables that those roles read, secrets included, of which nobody could tell a
value from the hash. A value that was looked up (in a file, the environment, a vault) counts as what was found
there. Where a lookup can be done on the host only, nobody knows what it would find now: its phases are never
as they were recorded.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any

from deploy import __version__
from deploy.content import content_root
from deploy.plan.catalog import PHASES, Phase
from deploy.plan.generated_inventory import WiredVariables
from deploy.site.hardware import Hardware
from deploy.site.inventory import Host, Site
from deploy.site.reading import Resolution

_SHARED = ("library", "module_utils", "action_plugins", "filter_plugins")
_LEFT_OUT = frozenset({"__pycache__", "README.md"})
_PLAY = re.compile(r"^(?=- )", re.MULTILINE)
_HOSTS = re.compile(r"^  hosts: (phase_\w+)$", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
# With one of these a template can mean any variable without its name.
_MEANS_ANYTHING = frozenset({"vars", "hostvars", "lookup", "query", "q", "varnames", "groups"})


def fingerprints(
    site: Site, contract: Mapping[str, Hardware], wired: WiredVariables, secrets: Mapping[str, Any]
) -> dict[str, dict[str, str]]:
    """By host and phase, for every phase that a host takes part in.

    ``wired`` follows from the site as its templates are resolved.
    """
    members = {phase: {host.name for host in phase.members(site, contract)} for phase in PHASES}
    shared = {phase.group: _Source(wired.shared.get(phase.group, {})) for phase in PHASES}
    of_all = _Source({**secrets, "groups": site.groups})
    unknown = token_hex() if site.leaves_templates else ""

    def of_host(host: Host, phases: list[Phase]) -> dict[str, str]:
        # Everything that can give a host's variable its value. Which one wins does not matter for a hash.
        own = [
            _Source(host.variables),
            _Source(_looked_up(host.resolutions)),
            _Source(wired.by_host.get(host.name, {})),
        ]
        sources = [*own, *(shared[phase.group] for phase in phases), of_all]
        return {phase.name: _fingerprint(phase, sources, unknown) for phase in phases}

    return {
        host.name: of_host(host, phases)
        for host in site.cluster
        if (phases := [phase for phase in PHASES if host.name in members[phase]])
    }


def _looked_up(resolutions: Mapping[str, Resolution]) -> dict[str, Any]:
    """What templates come to; what cannot be looked up here is another thing each time."""
    return {
        name: resolution.value if resolution.is_known else token_hex()
        for name, resolution in resolutions.items()
        if resolution.is_known or resolution.is_unforeseen
    }


class _Source:
    """Variables from one place; what is asked of one that many hosts share is worked out once."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self._hashes: dict[str, str] = {}
        self._words: dict[str, frozenset[str]] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that are here."""
        return frozenset(self.values)

    def hash_of(self, name: str) -> str:
        """A hash of a variable's value."""
        if name not in self._hashes:
            self._hashes[name] = _hash(self.values[name])
        return self._hashes[name]

    def words_of(self, name: str) -> frozenset[str]:
        """The words in the templates of a variable's value, which may be names of others."""
        if name not in self._words:
            self._words[name] = frozenset(_words(self.values.get(name)))
        return self._words[name]


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if "{{" in value or "{%" in value:
            yield from _WORD.findall(value)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _words(name)
            yield from _words(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _words(part)


def _fingerprint(phase: Phase, sources: list[_Source], unknown: str) -> str:
    known = frozenset().union(*(source.names for source in sources))
    prefixes = tuple(f"{role}_" for role in phase.roles)
    read = {name for name in known if name.startswith(prefixes)}
    open_names = list(read)
    while open_names:
        name = open_names.pop()
        words = frozenset().union(*(source.words_of(name) for source in sources))
        mentioned = (known if words & _MEANS_ANYTHING else words & known) - read
        read |= mentioned
        open_names += mentioned
    values = [
        (name, [source.hash_of(name) for source in sources if name in source.names]) for name in sorted(read)
    ]
    return _hash([_versions(), _of_files(content_root(), phase), values, unknown])


@cache
def _versions() -> tuple[str, str]:
    """Of what does the work: another one may make something else of the same."""
    return __version__, version("ansible-core")


@cache
def _of_files(root: Path, phase: Phase) -> str:
    """A hash of the files that do a phase's work."""
    places = [root / "playbooks" / name for name in _SHARED] + [root / "roles" / role for role in phase.roles]
    return _hash([plays(root).get(phase.group, ""), *(_of_directory(root, place) for place in places)])


@cache
def plays(root: Path) -> dict[str, str]:
    """By the group that a play names as its hosts, its text."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((root / "playbooks").glob("*.yml")))
    return {found[1]: play for text in texts for play in _PLAY.split(text) if (found := _HOSTS.search(play))}


@cache
def _of_directory(root: Path, place: Path) -> str:
    text = hashlib.sha256()
    for path in sorted(_files(place)):
        text.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    return text.hexdigest()


def _files(place: Path) -> Iterator[Path]:
    for directory, directories, names in os.walk(place):
        directories[:] = [name for name in directories if name not in _LEFT_OUT]
        yield from (Path(directory, name) for name in names if name not in _LEFT_OUT)

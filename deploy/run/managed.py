"""What a task manages on its host, from what its module says it did: the recorders of the manifest.

Our own modules say it themselves, under ``deploy_manages`` of their results.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

Managed = Mapping[str, tuple[str, ...]]
"""Names by kind: files, packages, services, users, groups, mounts, sysctls, modules, hardware."""

_FILES = frozenset(
    {
        *("assemble", "authorized_key", "blockinfile", "copy", "file", "get_url", "ini_file"),
        *("lineinfile", "pam_limits", "replace", "template"),
    }
)
_PACKAGES = frozenset({"apt", "dnf", "package"})
_SERVICES = frozenset({"service", "systemd", "systemd_service"})
_NAMED = {"user": "users", "group": "groups", "modprobe": "modules"}
RECORDED = _FILES | _PACKAGES | _SERVICES | _NAMED.keys() | {"mount", "sysctl"}
"""Modules whose results are understood, by their short names."""


def managed(action: str, result: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The names by kind in a result that is not a failure; a loop's items are put together."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    items = result.get("results")
    for part in [result, *(items if isinstance(items, list) else [])]:
        if isinstance(part, Mapping) and not part.get("skipped"):
            for kind, name in _of(action.rpartition(".")[2], part):
                found[kind][name] = None
    return {kind: tuple(names) for kind, names in found.items()}


def _of(module: str, result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    said = result.get("deploy_manages")
    if isinstance(said, Mapping):
        yield from ((str(kind), str(name)) for kind, names in said.items() for name in names)
        return
    invocation = result.get("invocation")
    arguments = invocation.get("module_args") if isinstance(invocation, Mapping) else None
    told: Mapping[str, Any] = arguments if isinstance(arguments, Mapping) else {}
    if module in _FILES:
        # A result knows the file; the argument may be the directory it went into.
        name = result.get("dest") or result.get("path") or told.get("dest") or told.get("path")
        yield from _named("files", name)
    elif module in _PACKAGES:
        for name in _listed(told.get("name") or told.get("package") or told.get("pkg")):
            yield "packages", name.split("=")[0]
    elif module in _SERVICES:
        yield from _named("services", told.get("name") or told.get("service") or told.get("unit"))
    elif module in _NAMED:
        yield from _named(_NAMED[module], told.get("name"))
    elif module == "mount":
        yield from _named("mounts", told.get("path"))
        yield "files", "/etc/fstab"
    elif module == "sysctl":
        yield from _named("sysctls", told.get("name"))
        yield from _named("files", told.get("sysctl_file") or "/etc/sysctl.conf")


def _named(kind: str, name: object) -> Iterator[tuple[str, str]]:
    if name:
        yield kind, str(name)


def _listed(value: object) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [str(part) for part in value] if isinstance(value, list) else []

"""What a task manages on its host, from what its module says it did: the recorders of the manifest.

Our own modules say it themselves, under ``deploy_manages`` of their results: by kind the names, or the names
with the states that they left behind, as ``host_records`` describes states.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

State = Mapping[str, Any] | str | None
"""What a module reported of something that it left behind: the whole state, or the parts that it knows.

``None`` is said of what is not there; a part that is ``None`` is not known any more.
"""
Managed = Mapping[str, Mapping[str, State]]
"""States by kind and name; kinds are files, packages, services, users, groups, mounts, sysctls, modules and
hardware.
"""

_FILES = frozenset(
    {
        *("assemble", "blockinfile", "copy", "deb822_repository", "file", "get_url", "known_hosts"),
        *("lineinfile", "replace", "template"),
    }
)
_PACKAGES = frozenset({"apt", "dnf", "package"})
_SERVICES = frozenset({"service", "systemd", "systemd_service"})
_NAMED = {"user": "users", "group": "groups"}
_WHOLE = frozenset({"copy", "template"})
"""Those of them that say the checksum of the whole file that they left behind."""
_TYPES = {"file": "file", "hard": "file", "directory": "directory"}
_UNKNOWN: State = {}
RECORDED = _FILES | _PACKAGES | _SERVICES | _NAMED.keys()
"""Modules of ansible-core whose results are understood, by their short names."""


def managed(action: str, result: Mapping[str, Any]) -> dict[str, dict[str, State]]:
    """The states by kind and name in a result that is not a failure; a loop's items are put together."""
    found: defaultdict[str, dict[str, State]] = defaultdict(dict)
    items = result.get("results")
    for part in [result, *(items if isinstance(items, list) else [])]:
        # Since 2.21 Ansible says of an item of a loop no more than by the reason that it was skipped.
        if isinstance(part, Mapping) and not (part.get("skipped") or part.get("skip_reason")):
            for kind, name, state in _of(action.rpartition(".")[2], part):
                found[kind][name] = later(found[kind].get(name, {}), state)
    return dict(found)


def later(before: State, after: State) -> State:
    """What is known of something when one report of it follows another."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        return before if after == {} else after
    is_another = before.get("type", after.get("type")) != after.get("type", before.get("type"))
    return {**({} if is_another else before), **after}


def _of(module: str, result: Mapping[str, Any]) -> Iterator[tuple[str, str, State]]:
    said = result.get("deploy_manages")
    if isinstance(said, Mapping):
        for kind, names in said.items():
            states = names if isinstance(names, Mapping) else {name: {} for name in names}
            yield from ((str(kind), str(name), state) for name, state in states.items())
        return
    invocation = result.get("invocation")
    arguments = invocation.get("module_args") if isinstance(invocation, Mapping) else None
    told: Mapping[str, Any] = arguments if isinstance(arguments, Mapping) else {}
    if module in _FILES:
        # A result knows the file; the argument may be the directory it went into.
        name = result.get("dest") or result.get("path") or told.get("dest") or told.get("path")
        yield from _named("files", name, _file(module, result))
    elif module in _PACKAGES:
        for name in _listed(told.get("name") or told.get("package") or told.get("pkg")):
            yield "packages", name.split("=")[0], {}
    elif module in _SERVICES:
        yield from _named("services", told.get("name") or told.get("service") or told.get("unit"))
    elif module in _NAMED:
        yield from _named(_NAMED[module], told.get("name"))


def _file(module: str, result: Mapping[str, Any]) -> State:
    """What Ansible's modules say of a file: mode, owner and group, and the content where they know it."""
    kind = str(result.get("state", ""))
    if kind == "absent":
        return None
    if kind == "link":
        return {"type": "link", "target": result["src"]} if result.get("src") else {}
    if kind not in _TYPES or not all(isinstance(result.get(key), str) for key in ("mode", "owner", "group")):
        # One that was edited in place is what it is; its old content is not known any more.
        return {"content": None} if result.get("changed") else {}
    state = {
        "type": _TYPES[kind],
        "mode": format(int(result["mode"], 8), "04o"),
        "owner": result["owner"],
        "group": result["group"],
    }
    if module in _WHOLE and isinstance(result.get("checksum"), str):
        state["content"] = f"sha1:{result['checksum']}"
    return state


def _named(kind: str, name: object, state: State = _UNKNOWN) -> Iterator[tuple[str, str, State]]:
    if name:
        yield kind, str(name), state


def _listed(value: object) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [str(part) for part in value] if isinstance(value, list) else []

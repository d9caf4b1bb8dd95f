"""The text of an exports file from data: by address, and root of a client is nobody."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HEADER = "# Made by deploy; changes made here are undone by the next run.\n"
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?")
_BASE = ("sync", "no_subtree_check")


def problems(exports: Sequence[Mapping[str, Any]], clients: Sequence[str]) -> list[str]:
    """Clients that are no address, network or host name; directories that are exported twice."""
    found = [
        f"{export['path']}: {client!r} is neither an address, a network nor a host name"
        for export in exports
        for client in [*clients, *(export.get("clients") or [])]
        if not _is_client(client)
    ]
    paths = [export["path"] for export in exports]
    found += [
        f"{path} is exported twice" for path in sorted({path for path in paths if paths.count(path) > 1})
    ]
    return list(dict.fromkeys(found))


def _is_client(text: str) -> bool:
    return _is_ip(text) or bool(_NAME.fullmatch(text))


def exports_text(exports: Iterable[Mapping[str, Any]], clients: Sequence[str]) -> str:
    """The file: one line for each directory, with every client by name and the same options."""
    lines = [_line(export, clients) for export in sorted(exports, key=lambda export: export["path"])]
    return HEADER + "".join(lines)


def is_known_otherwise(text: str, exports: Iterable[Mapping[str, Any]], clients: Sequence[str]) -> bool:
    """Whether what `exportfs -s` says lacks one of the exports to an address, or has other rights for it."""
    known = {}
    for line in text.splitlines():
        path, _, rest = line.partition(" ")
        client, _, rights = rest.strip().partition("(")
        known[path.replace(r"\040", " "), _plain(client)] = set(rights.rstrip(")").split(","))
    for export in exports:
        wanted = {_writing(export), _squash(export)} - _decided_by({*(export.get("options") or [])})
        for client in _allowed(export, clients):
            rights = known.get((export["path"], _plain(client)))
            # Who is exported to by name may be known by another.
            if not (wanted <= rights if rights is not None else not _is_ip(client)):
                return True
    return False


def _decided_by(options: set[str]) -> set[str]:
    """The rights that further options say otherwise, or once more."""
    pairs = ({"rw", "ro"}, {"root_squash", "no_root_squash"})
    return {right for pair in pairs if pair & options for right in pair}


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _plain(client: str) -> str:
    return str(ipaddress.ip_network(client, strict=False)) if _is_ip(client) else client


def _allowed(export: Mapping[str, Any], clients: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*clients, *(export.get("clients") or [])]))


def _writing(export: Mapping[str, Any]) -> str:
    return "ro" if export.get("read_only") else "rw"


def _squash(export: Mapping[str, Any]) -> str:
    return "no_root_squash" if export.get("root_squash") is False else "root_squash"


def _line(export: Mapping[str, Any], clients: Sequence[str]) -> str:
    allowed = _allowed(export, clients)
    if not allowed:
        return ""
    options = [
        _writing(export),
        *_BASE,
        _squash(export),
        *(export.get("options") or []),
    ]
    path = f'"{export["path"]}"' if " " in export["path"] else export["path"]
    rights = ",".join(options)
    return " ".join([path, *(f"{client}({rights})" for client in allowed)]) + "\n"

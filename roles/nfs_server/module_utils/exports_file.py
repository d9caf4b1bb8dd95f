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
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return bool(_NAME.fullmatch(text))
    return True


def exports_text(exports: Iterable[Mapping[str, Any]], clients: Sequence[str]) -> str:
    """The file: one line for each directory, with every client by name and the same options."""
    lines = [_line(export, clients) for export in sorted(exports, key=lambda export: export["path"])]
    return HEADER + "".join(lines)


def _line(export: Mapping[str, Any], clients: Sequence[str]) -> str:
    allowed = dict.fromkeys([*clients, *(export.get("clients") or [])])
    if not allowed:
        return ""
    options = [
        "ro" if export.get("read_only") else "rw",
        *_BASE,
        "no_root_squash" if export.get("root_squash") is False else "root_squash",
        *(export.get("options") or []),
    ]
    path = f'"{export["path"]}"' if " " in export["path"] else export["path"]
    rights = ",".join(options)
    return " ".join([path, *(f"{client}({rights})" for client in allowed)]) + "\n"

"""Where in the admin's files a variable is set: Ansible's merged answer no longer says."""

import re
from pathlib import Path

_SUFFIXES = frozenset({"", ".yml", ".yaml", ".json", ".ini"})


def origin(directory: Path, inventory: Path, name: str) -> str:
    """``file:line`` of the first place that sets a variable (or names a host); empty if none is found."""
    key = re.compile(rf"(?:^|[\s{{,\"']){re.escape(name)}[\"']?\s*[:=]|^\s*{re.escape(name)}(?:\s|$)")
    for path in _files(directory, inventory):
        for number, line in enumerate(_lines(path), start=1):
            text = line.split("#", 1)[0]
            if key.search(text):
                return f"{_shown(path)}:{number}"
    return ""


def _files(directory: Path, inventory: Path) -> tuple[Path, ...]:
    """Inventory files, then group_vars and host_vars, none of them encrypted whole."""
    sources = sorted(inventory.iterdir()) if inventory.is_dir() else [inventory]
    variables = [p for kind in ("group_vars", "host_vars") for p in sorted((directory / kind).rglob("*"))]
    return tuple(p for p in [*sources, *variables] if p.is_file() and p.suffix in _SUFFIXES)


def _lines(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return ()


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)

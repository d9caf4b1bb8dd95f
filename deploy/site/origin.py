"""Where in the admin's files something is said, as ``file:line``."""

import os
import re
from pathlib import Path

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from deploy.site import own_files

SUFFIXES = frozenset({"", ".yml", ".yaml", ".json", ".ini"})


def shown(place: str) -> str:
    """An absolute place as the admin would type it: relative where it lies below the current directory."""
    here = os.getcwd()  # noqa: PTH109 - asked for each variable of each host
    return "." if place == here else place.removeprefix(f"{here}/")


def host_origin(inventory: Path, name: str) -> str:
    """The first line of the inventory that names a host; the inventory where a range does."""
    key = re.compile(rf"^\s*[\"']?{re.escape(name)}[\"']?(?:[\s:]|$)")
    for path in inventory_files(inventory):
        for number, line in enumerate(lines(path), start=1):
            if key.match(line.split("#", 1)[0]):
                return shown(f"{path}:{number}")
    return shown(str(inventory))


def host_lines(inventory: Path, name: str) -> tuple[str, ...]:
    """Every line of the inventory that names a host, as ``file:line``; of a range with its words."""
    found = []
    for path in inventory_files(inventory):
        for number, line in enumerate(lines(path), start=1):
            word = (line.split("#", 1)[0].split() or [""])[0].strip("\"'").removesuffix(":").strip("\"'")
            if word == name:
                found.append(shown(f"{path}:{number}"))
            elif "[" in word.lstrip("[") and name in _unfolded(word):
                found.append(f"{shown(f'{path}:{number}')} (in {word})")
    return tuple(found)


def _unfolded(word: str) -> frozenset[str]:
    """The hosts of a range as Ansible writes it, node[1:4]."""
    try:
        return frozenset(NodeSet(word.replace(":", "-"), resolver=RESOLVER_NOGROUP))
    except NodeSetException:
        return frozenset()


def inventory_files(inventory: Path) -> tuple[Path, ...]:
    """The files that make up an inventory, which may be a directory of them."""
    sources = sorted(inventory.iterdir()) if inventory.is_dir() else [inventory]
    sources = [path for path in sources if path == inventory or path.name not in own_files.NAMES]
    return tuple(path for path in sources if path.is_file() and path.suffix in SUFFIXES)


def lines(path: Path) -> tuple[str, ...]:
    """The lines of a text file; none where it is not one."""
    try:
        return tuple(path.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return ()

"""Files of group_vars and host_vars that Ansible passes over in silence."""

import difflib
from collections.abc import Collection, Iterator
from pathlib import Path

from deploy.errors import Finding, Severity
from deploy.site.inventory import Site
from deploy.site.origin import shown

_SUFFIXES = ("", ".yml", ".yaml", ".json")
"""What Ansible looks for, in this order; the first that is there is the only one."""

_ALWAYS = frozenset({"all", "ungrouped"})


def check_variable_files(site: Site) -> Iterator[Finding]:
    """Files that belong to no group or host, have another suffix, or lie beside one that wins."""
    yield from _files(site.directory / "group_vars", site.groups.keys() | _ALWAYS, "group")
    yield from _files(site.directory / "host_vars", site.hosts.keys(), "host")


def _files(directory: Path, names: Collection[str], kind: str) -> Iterator[Finding]:
    if not directory.is_dir():
        return
    first: dict[str, Path] = {}
    for path in sorted(directory.iterdir(), key=_rank):
        name = path.name if path.is_dir() else _stem(path, names)
        if path.name.startswith(".") or path.name.endswith("~"):
            continue
        if name is None or (path.is_file() and _suffix(path, name) not in _SUFFIXES):
            yield Finding(
                shown(str(path)),
                "vars-file-ignored",
                f"Ansible does not read a file with the ending {path.suffix!r} here",
                f"call it {path.stem}.yml",
            )
        elif name in first:
            yield Finding(
                shown(str(path)),
                "vars-file-ignored",
                f"Ansible reads {first[name].name} and not this file beside it",
                "move its variables there",
            )
        elif name not in names:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
            yield Finding(
                shown(str(path)),
                "vars-file-of-nobody",
                f"the inventory has no {kind} {name!r}, so nothing reads these variables",
                f"did you mean {close[0]!r}?" if close else f"add the {kind}, or remove the file",
                Severity.ERROR if close else Severity.WARNING,
            )
        else:
            first[name] = path


def _rank(path: Path) -> tuple[int, str]:
    return (_SUFFIXES.index(path.suffix) if path.suffix in _SUFFIXES else len(_SUFFIXES), path.name)


def _stem(path: Path, names: Collection[str]) -> str | None:
    """The group or host that a file is for; a host's name may have a dot."""
    if path.name in names:
        return path.name
    return path.stem if path.suffix in _SUFFIXES else None


def _suffix(path: Path, name: str) -> str:
    return path.name.removeprefix(name)

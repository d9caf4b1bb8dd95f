"""Names and ids that this machine has for itself and that the directory has, too.

Of the standard library alone: as a program, it prints a line for each.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence

_FILES = {"passwd": "/etc/passwd", "group": "/etc/group"}
_WORDS = {"passwd": ("account", "uid"), "group": ("group", "gid")}
_SECONDS = "8"
_UNPRIVILEGED = 1000


def clashes(database: str, local: Iterable[str], directory: Iterable[str]) -> list[str]:
    """Lines about entries of the directory that take a name or an id of this machine's own.

    Both are lines of passwd(5) or group(5). An account may be in both with the same id: it is one person's.
    """
    word, number = _WORDS[database]
    own = [line.split(":") for line in local if line.count(":") > 2]  # noqa: PLR2004
    names, ids = {entry[0]: entry[2] for entry in own}, {entry[2]: entry[0] for entry in own}
    found = []
    for entry in (line.split(":") for line in directory if line.count(":") > 2):  # noqa: PLR2004
        name, identity = entry[0], entry[2]
        if name in names:
            same = "the same" if names[name] == identity else f"{names[name]} here, {identity} there"
            found.append(
                f"{word} {name} is in {_FILES[database]} and in the directory ({number}: {same}): this "
                "machine's own counts; keep one of the two"
            )
        elif identity in ids:
            found.append(
                f"{number} {identity} is {ids[identity]}'s in {_FILES[database]} and {name}'s in the "
                f"directory, who has {ids[identity]}'s files: give one of the two another"
            )
    return list(dict.fromkeys(found))


def _lines(database: str) -> list[str]:
    with open(_FILES[database], encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read().splitlines()


def _of_directory(database: str, keys: Sequence[str]) -> list[str]:
    """What the directory has of these; nothing where it cannot be asked."""
    command = ["timeout", _SECONDS, "getent", "--service=sss", database, *keys]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout.splitlines()


if __name__ == "__main__":
    for kind in _FILES:
        lines = _lines(kind)
        entries = [line.split(":") for line in lines if line.count(":") > 2]  # noqa: PLR2004
        wanted = [entry[0] for entry in entries]
        wanted += [entry[2] for entry in entries if int(entry[2]) >= _UNPRIVILEGED]
        told = clashes(kind, lines, _of_directory(kind, wanted)) if wanted else []
        sys.stdout.writelines(f"{line}\n" for line in told)

"""What a host says after a run was killed; run there as root, with the standard library alone.

Prints JSON: ``files`` are all below /etc and /usr/local by their digests, ``wrong`` what does not parse,
``undone`` what dpkg and apt have to do yet, ``locked`` the locks of apt and dpkg that somebody holds,
``temporary`` what looks like a file of a run.
"""

import ast
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_ROOTS = ("/etc", "/usr/local")
_OF_RUNS = {
    ("/tmp", "/var/tmp", "/run", "/dev/shm", "/root"): r"ansible|deploy-[a-z]+-",
    ("/etc", "/usr/local", "/var/lib/deploy"): r"\.ansible_tmp|\..+\.\d+$|.+\.new$",
}
"""Where runs make files for themselves, and how those are called."""
_LOCKS = (
    "/var/lib/dpkg/lock",
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
_UNITS = "/etc/systemd/system/"
_COMMANDS = (("sshd", "-t"), ("visudo", "--check", "--quiet"))
"""Asked where there is such a program."""
_PACKAGES = (("dpkg", "--audit"), ("apt-get", "check", "--quiet=2"))
"""Each says nothing where all is well. apt goes on when the run is gone that started it."""


def files() -> dict[str, str]:
    """By path a digest; of a link where it points."""
    found = {}
    for path in _below(_ROOTS):
        if path.is_symlink():
            found[str(path)] = f"-> {path.readlink()}"
        elif path.is_file():
            found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _below(roots: tuple[str, ...], *, directories: bool = False) -> Iterator[Path]:
    for root in roots:
        for place, inner, names in os.walk(root):
            inner[:] = [name for name in inner if not name.startswith("systemd-private-")]
            yield from (Path(place) / name for name in (names + inner if directories else names))


def wrong(since: float) -> dict[str, str]:
    """What was written since then and does not parse, and what programs say of their own files."""
    found = {}
    for path in _below(_ROOTS):
        if (
            path.is_file()
            and not path.is_symlink()
            and path.stat().st_mtime >= since
            and (why := parse(path))
        ):
            found[str(path)] = why
    return {**found, **_refused(_COMMANDS)}


def undone() -> dict[str, str]:
    """What dpkg and apt have left undone."""
    return _refused(_PACKAGES)


def _refused(commands: tuple[tuple[str, ...], ...]) -> dict[str, str]:
    found = {}
    for command in commands:
        if shutil.which(command[0]):
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if done.returncode or (command in _PACKAGES and done.stdout):
                found[" ".join(command)] = (done.stdout + done.stderr).strip()[-300:]
    return found


def parse(path: Path) -> str:
    """Why a file is not whole; empty where it is, or where nobody knows of its kind."""
    text = path.read_bytes()
    try:
        if path.suffix == ".json":
            json.loads(text)
        elif path.suffix == ".py":
            ast.parse(text)
    except (ValueError, SyntaxError) as problem:
        return f"{type(problem).__name__}: {problem}"
    if path.suffix == ".nft":
        return _objection("nft", "--check", "--file", str(path))
    if path.suffix == ".sh" or text.startswith((b"#!/bin/sh", b"#!/bin/bash")):
        return _objection("bash", "-n", str(path))
    if str(path.parent) + "/" == _UNITS and path.suffix in {".service", ".timer", ".socket", ".mount"}:
        return _objection("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(path))
    return ""


def _objection(*command: str) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()[-300:] or "failed" if done.returncode else ""


def locked() -> list[str]:
    """The locks of apt and dpkg that somebody holds."""
    found = []
    for path in map(Path, _LOCKS):
        if path.exists():
            with path.open("r+b") as file:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    found.append(str(path))
    return found


def temporary() -> list[str]:
    """Files that runs make for themselves, and directories that have any; mitogen leaves empty ones."""
    return sorted(
        str(path)
        for roots, pattern in _OF_RUNS.items()
        for path in _below(roots, directories=True)
        if re.match(pattern, path.name) and not (path.is_dir() and not any(path.iterdir()))
    )


def main(since: float) -> None:
    """Says all of it."""
    answer = {
        "files": files(),
        "wrong": wrong(since),
        "undone": undone(),
        "locked": locked(),
        "temporary": temporary(),
    }
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(float(sys.argv[1]))

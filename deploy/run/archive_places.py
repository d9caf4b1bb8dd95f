"""Where backups are kept: a directory of this machine, or of another one that sftp reaches."""

import re
import subprocess
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deploy.errors import shown_path
from deploy.place import place_on_disk

_REMOTE = re.compile(r"(?P<login>[\w.@-]+):(?P<directory>[\w./@+-]*)")
_OPTIONS = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=10")
_LISTED = re.compile(r"-\S+ +\S+ +\S+ +\S+ +(?P<size>\d+) .* (?P<path>\S+)")
"""A line of ``ls -lan``, sftp(1)."""
PART = ".part"
"""How the name of what is not sent whole yet ends; it begins with a dot."""
_CLOSED = "Connection closed"
"""What sftp says last, whatever ended the connection."""


class PlaceError(Exception):
    """The place cannot be reached, read or written; the text says why."""


@dataclass(frozen=True)
class Local:
    """A directory of this machine."""

    directory: Path

    def __str__(self) -> str:
        return shown_path(self.directory)

    def of(self, name: str) -> str:
        """What an archive is called by whoever looks for it."""
        return str(self.directory / name)

    @contextmanager
    def filled(self) -> Iterator[Path]:
        """A directory: what is in it in the end is in the place."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        yield self.directory

    def sizes(self) -> dict[str, int]:
        """The files there and their sizes in bytes."""
        if not self.directory.is_dir():
            return {}
        return {path.name: path.stat().st_size for path in self.directory.iterdir() if path.is_file()}

    def remove(self, names: Collection[str]) -> None:
        """Removes files."""
        for name in names:
            (self.directory / name).unlink(missing_ok=True)


@dataclass(frozen=True)
class Remote:
    """A directory of another machine, reached as the user's own ssh reaches it; its host key is known."""

    login: str
    directory: str

    def __str__(self) -> str:
        return f"{self.login}:{self.directory}"

    def of(self, name: str) -> str:
        """What an archive is called by whoever looks for it."""
        return f"{self}/{name}"

    @contextmanager
    def filled(self) -> Iterator[Path]:
        """A directory of this machine: what is in it in the end is sent, each file whole or not at all."""
        self._do(f"-mkdir {self.directory}", f"ls -ln {self.directory}")
        with place_on_disk("backup") as directory:
            yield directory
            for path in sorted(directory.iterdir()):
                part, whole = (f"{self.directory}/{name}" for name in (f".{path.name}{PART}", path.name))
                self._do(f'put "{path}" {part}', f"chmod 600 {part}", f"rename {part} {whole}")

    def sizes(self) -> dict[str, int]:
        """The files there and their sizes in bytes."""
        listed = filter(None, map(_LISTED.fullmatch, self._do(f"ls -lan {self.directory}").splitlines()))
        return {found["path"].rpartition("/")[2]: int(found["size"]) for found in listed}

    def remove(self, names: Collection[str]) -> None:
        """Removes files."""
        if names:
            self._do(*(f"rm {self.directory}/{name}" for name in names))

    def _do(self, *commands: str) -> str:
        """What sftp says to some commands; at the first that fails, but for one with a ``-``, it ends."""
        try:
            done = subprocess.run(
                ["sftp", "-b", "-", *_OPTIONS, self.login],
                input="".join(f"{command}\n" for command in commands),
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError as problem:
            message = f"sftp: {problem.strerror}"
            raise PlaceError(message) from None
        if done.returncode:
            said = [line for line in done.stderr.strip().splitlines() if line != _CLOSED]
            message = said[-1] if said else f"sftp ended with {done.returncode}"
            raise PlaceError(message)
        return done.stdout


Place = Local | Remote


def place(text: str) -> Place:
    """``[USER@]HOST:DIRECTORY``, as scp(1) writes it, or a directory. Raises ValueError."""
    if ":" not in text.partition("/")[0]:
        return Local(Path(text))
    found = _REMOTE.fullmatch(text)
    if not found or found["login"].startswith("-"):
        message = "is neither a directory nor [USER@]HOST:DIRECTORY without spaces and special characters"
        raise ValueError(message)
    return Remote(found["login"], found["directory"].rstrip("/") or ".")

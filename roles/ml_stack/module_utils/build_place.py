"""What comes from an index is handled by an account that owns nothing but the place where it builds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pwd import struct_passwd

_BEGIN = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
_ALL_MAY_READ, _ALL_MAY_RUN = 0o644, 0o755
_RUNS = 0o100


class BuildError(Exception):
    """An environment could not be built; nothing of it was left behind."""


@dataclass(frozen=True)
class BuildPlace:
    """A directory of root's with three in it that belong to the account."""

    account: struct_passwd
    directory: Path

    @property
    def environment(self) -> Path:
        """Where the files of the environment lie while it is built."""
        return self.directory / "environment"

    @property
    def wheels(self) -> Path:
        """Where the packages lie that it is built of."""
        return self.directory / "wheels"

    @property
    def settings(self) -> dict[str, str]:
        """The process environment: credentials for an index are in ``.netrc`` of the account."""
        return {"HOME": self.account.pw_dir, "TMPDIR": str(self.directory / "tmp")}

    @contextmanager
    def made(self) -> Iterator[None]:
        """Makes it anew, and takes it away in the end."""
        self._clear()
        self.directory.mkdir(parents=True)
        try:
            for path in (self.environment, self.wheels, self.directory / "tmp"):
                path.mkdir()
                os.chown(path, self.account.pw_uid, self.account.pw_gid)
            yield
        finally:
            self._clear()

    def command(self, place: Path, command: Sequence[str]) -> list[str]:
        """Runs a command as the account, which sees the environment where it will lie in the end.

        When the command ends, so does every process that it left: nobody writes when root takes over.
        """
        account = self.account
        return [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--"),
            *("sh", "-c", _BEGIN, "sh", str(self.environment), str(place)),
            *("setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"),
            *("--no-new-privs", "--"),
            *command,
        ]

    def _clear(self) -> None:
        if self.directory.exists():
            shutil.rmtree(self.directory)


@contextmanager
def acting_as(account: struct_passwd) -> Iterator[None]:
    """Root writes as another account, in storage where root may not."""
    if account.pw_uid == os.geteuid():
        yield
        return
    groups = os.getgroups()
    os.setgroups(os.getgrouplist(account.pw_name, account.pw_gid))
    os.setegid(account.pw_gid)
    os.seteuid(account.pw_uid)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        os.setegid(os.getgid())
        os.setgroups(groups)


def copy_tree(source: Path, target: Path) -> None:
    """New files that belong to whoever copies, that all may read and nobody else may change."""
    with os.scandir(source) as found:
        entries = list(found)
    for entry in entries:
        copy = target / entry.name
        if entry.is_symlink():
            copy.symlink_to(Path(entry.path).readlink())
        elif entry.is_dir():
            copy.mkdir()
            copy_tree(Path(entry.path), copy)
        elif entry.is_file():
            status = entry.stat()
            shutil.copyfile(entry.path, copy)
            copy.chmod(_ALL_MAY_RUN if status.st_mode & _RUNS else _ALL_MAY_READ)
            # What Python compiled is for a source of this time.
            os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
        else:
            message = f"{entry.path} is neither a file nor a directory nor a link"
            raise BuildError(message)

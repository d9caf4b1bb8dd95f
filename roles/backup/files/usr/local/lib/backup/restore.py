"""Puts the parts of a backup onto a controller. Sent as text over ssh, behind that of backup.py.

Root runs it, with the standard library of Python 3.9 alone; a part comes by standard input. What was there is
put aside and stays. Everything is whole before it takes the place of what was there.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pwd
import shutil
import struct
import subprocess
import sys
import tarfile
import time
from pathlib import Path, PurePosixPath

from backup import (
    BLOCK,
    DRAINS,
    ENVIRONMENT,
    HOSTS,
    LEDGER,
    PLACE,
    POINTER,
    NoBackupError,
    alone,
    counts,
    give_up,
    input_of,
    must,
    need_room,
    rows,
    tables,
    throwaway,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

# How job_state begins (Slurm's dump_all_job_state): a text with its length, the version of the protocol, the
# time, and the id that the next job gets.
_HEADER = struct.Struct(">I17sHQI")
_VERSION = b"PROTOCOL_VERSION\0"
_DAEMONS = ("slurmctld", "slurmdbd")
# By the number of the first deploy knows that controllers share the directory: a copy has another one. The
# second says with which configuration they may lead.
_MARKS = ("deploy_shared", "deploy_configuration")
_FRESH, _ASIDE = ".restoring", ".before-restore-{}"
_SECONDS_TO_ANSWER = 120
_SYNCED = "SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'"
_IS_SYNCED = "wsrep_local_state_comment\tSynced"
_PAUSE = 0.5


def look(state: str, database: str) -> dict[str, Any]:
    """What is there already: daemons that run, whether there is a state, how many jobs the database has.

    ``server`` and ``slurmctld`` say what of them is installed, ``programs`` whether both are. ``jobs`` is
    None where there is no database.
    """
    has_server = shutil.which("mariadbd", path=ENVIRONMENT["PATH"]) is not None
    has_slurmctld = shutil.which("slurmctld", path=ENVIRONMENT["PATH"]) is not None
    jobs = None
    if has_server:
        with contextlib.suppress(NoBackupError):
            jobs = counts(database)["jobs"]
    return {
        "daemons": [name for name in _DAEMONS if _runs(name)],
        "state": (Path(state) / "job_state").exists(),
        "jobs": jobs,
        "server": has_server,
        "slurmctld": has_slurmctld,
        "programs": has_server and has_slurmctld,
    }


def _runs(daemon: str) -> bool:
    """Whether it runs, or systemd tries again and again to have it run."""
    with contextlib.suppress(NoBackupError):
        said = must("systemctl", "show", "--property=ActiveState", "--value", daemon)
        return said.strip() not in {"inactive", "failed"}
    return False


def stop() -> dict[str, Any]:
    """Stops the daemons of this host, so that none writes what is about to be replaced, here or elsewhere."""
    for name in _DAEMONS:
        if _runs(name):
            must("systemctl", "stop", name)
    return {}


def put_state(
    directory: str, least: int, records: Mapping[str, str], when: str, *, is_new: bool = False
) -> dict[str, Any]:
    """Makes the state that comes that of the slurmctld of this host, which is stopped; what was, goes aside.

    The next job gets ``least`` or a later id, and none that the former slurmctld gave, if what it left can be
    read (``are_ids_known``). Records are put where there are none; the hosts that the cluster has had
    are added to those that a new controller knows since it got its packages.
    """
    root = Path(directory)
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    fresh, aside = root / _FRESH, root / _ASIDE.format(when)
    if fresh.exists():
        shutil.rmtree(fresh)
    fresh.mkdir(mode=0o700)
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|gz") as tar:
        for entry in tar:
            if entry.name not in _MARKS:
                _unpack(tar, entry, fresh)
    _raise_next_job_id(fresh / "job_state", least)
    own(str(fresh))
    stop()
    given = list(_next_job_ids(root))
    _raise_next_job_id(fresh / "job_state", max((0, *given)))
    os.sync()
    # What deploy has there, the ledger of drains and its marks, is none of slurmctld's.
    before = [path for path in root.iterdir() if not path.name.startswith((".", LEDGER, *_MARKS))]
    if before:
        aside.mkdir(mode=0o700)
        for path in before:
            path.rename(aside / path.name)
    for path in fresh.iterdir():
        path.rename(root / path.name)
    fresh.rmdir()
    # Empty it says that this is the state now; an earlier one stays, with its number.
    (root / _MARKS[0]).touch(mode=0o600)
    own(directory)
    for name, text in records.items():
        # Several controllers have one ledger of drains, which is elsewhere.
        is_elsewhere = name == DRAINS and (PLACE / POINTER).exists()
        file = PLACE / name
        if file.exists() and name == HOSTS and is_new:
            file.write_text(
                json.dumps({**json.loads(text), **json.loads(file.read_bytes())}), encoding="utf-8"
            )
        elif not is_elsewhere and not file.exists():
            PLACE.mkdir(mode=0o755, parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            file.chmod(0o600)
    os.sync()
    return {"aside": str(aside) if before else "", "are_ids_known": bool(given) or not before}


def _next_job_ids(root: Path) -> Iterator[int]:
    """What slurmctld's lists of jobs say, those that are whole: it may be a broken one that is restored."""
    for name in ("job_state", "job_state.old"):
        with contextlib.suppress(FileNotFoundError, NoBackupError):
            yield next_job_id((root / name).read_bytes())


def _unpack(tar: tarfile.TarFile, entry: tarfile.TarInfo, root: Path) -> None:
    name = PurePosixPath(entry.name)
    if name.is_absolute() or ".." in name.parts or not (entry.isfile() or entry.isdir()):
        give_up(f"the state in the backup has {entry.name!r}, which no StateSaveLocation has")
    path = root / name
    if entry.isdir():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    file = tar.extractfile(entry)
    path.write_bytes(file.read() if file else b"")
    path.chmod(entry.mode & 0o700)
    os.utime(path, (entry.mtime, entry.mtime))


def next_job_id(content: bytes) -> int:
    """The id that the next job gets by a list of jobs."""
    if len(content) < _HEADER.size or _HEADER.unpack_from(content)[:2] != (len(_VERSION), _VERSION):
        give_up("a job_state does not begin as slurmctld's does")
    return int(_HEADER.unpack_from(content)[-1])


def with_next_job_id(content: bytes, least: int) -> bytes:
    """The list of jobs with this id for the next one, where it has a lower one."""
    following = max(next_job_id(content), least)
    return _HEADER.pack(*_HEADER.unpack_from(content)[:-1], following) + content[_HEADER.size :]


def _raise_next_job_id(path: Path, least: int) -> None:
    path.write_bytes(with_next_job_id(path.read_bytes(), least))


def own(directory: str) -> None:
    """Gives the state to the user slurm, once there is one; not what is deploy's in there."""
    try:
        user = pwd.getpwnam("slurm")
    except KeyError:
        return
    for place, names, files in os.walk(directory):
        if place == directory:
            # The ledger of drains is root's alone.
            names[:] = [name for name in names if not name.startswith(LEDGER)]
        for path in (place, *(os.path.join(place, name) for name in (*names, *files))):  # noqa: PTH118
            os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)


def put_given(name: str, text: str) -> dict[str, Any]:
    """Has this host remember what roles had given when the backup was made, as what is put back has it.

    The next run takes away of it what is declared no more.
    """
    file = PLACE / name
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = file.with_name(f".{file.name}.restoring")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o600)
    fresh.replace(file)
    return {}


def put_database(name: str, expected: Mapping[str, int], when: str, size: int) -> dict[str, Any]:
    """Makes the dump that comes the accounting database; the tables that were go to a database beside it."""
    fresh, aside = f"{name}_restoring", f"{name}_before_restore_{when}"
    _wait_for_server()
    _tell(f"DROP DATABASE IF EXISTS `{fresh}`")
    (place,) = rows("SELECT @@datadir")
    need_room(place, size, "loading the database beside the one that is there")
    _tell(f"CREATE DATABASE `{fresh}`")
    _load(fresh)
    _compare(counts(fresh), expected)
    stop()
    _tell(f"CREATE DATABASE IF NOT EXISTS `{name}`")
    before = tables(name)
    moves = [f"`{fresh}`.`{table}` TO `{name}`.`{table}`" for table in tables(fresh)]
    if before:
        _tell(f"CREATE DATABASE `{aside}`")
        moves = [f"`{name}`.`{table}` TO `{aside}`.`{table}`" for table in before] + moves
    # One statement: all of them or none.
    _tell(f"RENAME TABLE {', '.join(moves)}")
    _tell(f"DROP DATABASE `{fresh}`")
    return {"aside": aside if before else ""}


def leave() -> dict[str, Any]:
    """Ends the MariaDB of this host, a member of several, in order: the others go on without it.

    slurmdbd of this host, which its start starts, is not to take over meanwhile.
    """
    stop()
    with contextlib.suppress(NoBackupError):
        must("systemctl", "disable", "slurmdbd")
    must("systemctl", "stop", "mariadb")
    return {}


def join(name: str, expected: Mapping[str, int]) -> dict[str, Any]:
    """Starts it again: it gets the rows of the others, which are counted where it is said what to expect."""
    try:
        # Whatever the others have to send comes before the end of this.
        must("systemctl", "start", "mariadb")
    finally:
        with contextlib.suppress(NoBackupError):
            must("systemctl", "enable", "slurmdbd")
    if expected:
        deadline = time.monotonic() + _SECONDS_TO_ANSWER
        while not (is_synced := rows(_SYNCED) == [_IS_SYNCED]) and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        if not is_synced:
            give_up("MariaDB runs, and has not yet what the other members have")
        _compare(counts(name), expected)
    return {}


def try_state(least: int) -> dict[str, Any]:
    """Reads the state that comes as `put_state` would, and writes nothing."""
    jobs = 0
    with tarfile.open(fileobj=sys.stdin.buffer, mode="r|gz") as tar:
        for entry in tar:
            file = tar.extractfile(entry)
            content = file.read() if file else b""
            jobs += entry.name.endswith("/script")
            if entry.name == "job_state":
                with_next_job_id(content, least)
    return {"scripts": jobs}


def try_database(name: str, expected: Mapping[str, int], size: int) -> dict[str, Any]:
    """Loads the dump that comes into a server of its own, which vanishes."""
    with alone(), throwaway(name, size) as server:
        _load(name, *server)
        _compare(counts(name, *server), expected)
    return {}


def _compare(loaded: Mapping[str, int], expected: Mapping[str, int]) -> None:
    differing = [what for what in ("tables", "jobs", "associations") if loaded[what] != expected[what]]
    if differing:
        said = ", ".join(f"{loaded[what]} {what} of {expected[what]}" for what in differing)
        give_up(f"the database has, when it is loaded, {said}")


def _wait_for_server() -> None:
    deadline = time.monotonic() + _SECONDS_TO_ANSWER
    while True:
        try:
            must("mariadb-admin", "ping")
        except NoBackupError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _tell(statement: str) -> None:
    must("mariadb", "--execute", statement)


def _blocks() -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=sys.stdin.buffer, mode="rb") as packed:
        yield from iter(lambda: packed.read(BLOCK), b"")


def _load(name: str, *server: str) -> None:
    with (
        subprocess.Popen(
            ("mariadb", *server, "--max-allowed-packet=1G", name),
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        ) as load,
        input_of(load) as loaded,
    ):
        for block in _blocks():
            loaded.write(block)
    if load.returncode:
        give_up("MariaDB could not load the dump")


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does what it is asked for and prints the answer as one line, or ends with a line that says why not."""
    verbs = {
        "look": look,
        "stop": stop,
        "leave": leave,
        "join": join,
        "put_state": put_state,
        "put_given": put_given,
        "put_database": put_database,
        "try_state": try_state,
        "try_database": try_database,
    }
    try:
        answer = verbs[verb](**arguments)
    except (NoBackupError, OSError, ValueError, EOFError, tarfile.TarError) as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(1)
    sys.stdout.write("\ndeploy:" + json.dumps(answer) + "\n")

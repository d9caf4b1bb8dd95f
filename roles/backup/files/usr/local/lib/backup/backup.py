"""Makes the part of a backup that lies on a host: Slurm's state, deploy's records, the database.

`deploy backup` sends this text over ssh and gets the members of an archive. The timer of the role backup runs
it on the controller, where it makes whole archives, encrypted to the site's recipients. Root runs it, with
the standard library of Python 3.9 alone. An archive is a tar file in age's format. What has no known length
beforehand is cut into pieces (``database.sql.gz/00000`` and so on), so that nothing of it lies on a disk on
its way. Last comes ``manifest.json``, with the checksum of every member: what was cut off has none.

The state goes before the database, which then has every row that the state refers to.
"""

from __future__ import annotations

import calendar
import contextlib
import fcntl
import gzip
import hashlib
import io
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, BinaryIO, NoReturn

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE, STATE, RECORDS = "database.sql.gz", "state.tar.gz", "records"
PLACE = Path("/var/lib/deploy")
DRAINS, HOSTS = "drains.json", "hosts.json"
# What roles gave, and take away when it is declared no more, by the part that has what was given. Of accounts
# the database itself has it, once a run has brought it there.
GIVEN = {"state": "given/slurm_reservations.json", "database": "given/slurm_accounts.json"}
# Of several controllers: which directory has the ledger of drains, and how that is called within the state.
POINTER, LEDGER = "ledger.json", "deploy_ledger"
_LOCK = ".backup.lock"
_JOBS = "job_state"
_PIECE = 16 << 20
BLOCK = 1 << 20
_SECONDS_TO_START = 60
_NEEDED_BYTES = 512 << 20
_OF_TABLES = "FROM information_schema.tables WHERE table_schema = '{}'"
_COUNT = "SELECT COUNT(*) FROM `{}`.`{}`"
_LAST_LINE = b"-- Dump completed"
# slurmctld writes a file beside, and gives it its name in steps between which the name is nobody's.
_UNFINISHED = re.compile(r"\.(new|old)$")
_PAUSE, _PAUSES = 0.02, 100
SHARES = ("sshare", "--all", "--noheader", "--parsable2", "--format", "Account,User,RawShares,RawUsage")
_OF_SHARES = 4
# How squeue says that a job is no task of an array.
_NO_TASK = "N/A"
# The timer's have a mark: they have not the site's files, and never are kept instead of those that have them.
_BY_TIMER = ".timer"
_NAME = re.compile(rf"(?P<cluster>.+)-(?P<when>\d{{8}}T\d{{6}}Z)(?:{re.escape(_BY_TIMER)})?\.age")
_UNFINISHED_NAME = re.compile(r"\.(?P<archive>.+\.age)\.\d+")
_DAY = 86400
_WHEN = "%Y%m%dT%H%M%SZ"
ENVIRONMENT = {
    **os.environ,
    "LC_ALL": "C",
    "PATH": f"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{os.environ.get('PATH', '')}",
}


class NoBackupError(Exception):
    """There is none, and the text says why."""


def give_up(why: str) -> NoReturn:
    """Raises NoBackupError."""
    raise NoBackupError(why)


def must(*command: str) -> str:
    """What a command prints. Raises NoBackupError with what it complains of."""
    done = subprocess.run(
        command,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        give_up(f"{command[0]}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


class Members:
    """The members of an archive that is being written, with the checksum of each."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.sums: dict[str, str] = {}

    def add(self, name: str, content: bytes) -> None:
        """A member of this content."""
        self.sums[name] = hashlib.sha256(content).hexdigest()
        self._write(name, content)

    @contextlib.contextmanager
    def pieces(self, name: str) -> Iterator[BinaryIO]:
        """What is written into it becomes pieces of a member."""
        pieces = _Pieces(self, name)
        yield pieces  # type: ignore[misc]
        pieces.end()

    def end(self, manifest: Mapping[str, Any]) -> None:
        """Ends the archive with what it is."""
        self._write(MANIFEST, json.dumps({**manifest, "members": self.sums}, indent=1).encode())
        self._out.write(tarfile.NUL * 2 * tarfile.BLOCKSIZE)

    def _write(self, name: str, content: bytes) -> None:
        about = tarfile.TarInfo(name)
        about.size, about.mode, about.mtime = len(content), 0o600, int(time.time())
        self._out.write(about.tobuf(tarfile.PAX_FORMAT))
        self._out.write(content)
        self._out.write(tarfile.NUL * (-len(content) % tarfile.BLOCKSIZE))


class _Pieces(io.RawIOBase):
    def __init__(self, members: Members, name: str) -> None:
        self._members, self._name = members, name
        self._held, self._count = bytearray(), 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:  # noqa: ANN401 - whatever has bytes
        self._held += content
        while len(self._held) >= _PIECE:
            self._add(_PIECE)
        return len(content)

    def end(self) -> None:
        """Adds what is held still: a member has one piece at least."""
        if self._held or not self._count:
            self._add(len(self._held))

    def _add(self, size: int) -> None:
        self._members.add(f"{self._name}/{self._count:05}", bytes(self._held[:size]))
        del self._held[:size]
        self._count += 1


def state(members: Members, directory: str) -> dict[str, Any]:
    """Adds a copy of slurmctld's StateSaveLocation, which may run meanwhile; says which jobs it has.

    The list of jobs goes before their scripts: slurmctld writes a job's script before it lists the job, so
    that every listed job has its script in the copy, unless it ended meanwhile.
    """
    root = Path(directory)
    names = {_UNFINISHED.sub("", path.name) for path in root.iterdir() if not path.is_dir()}
    if _JOBS not in names:
        give_up(f"{root} has no {_JOBS}: slurmctld saves it with its first job, and when it stops")
    ordered = sorted(names, key=lambda name: (name != _JOBS, name))
    with (
        members.pieces(STATE) as out,
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in ordered:
            _add_file(tar, root, name)
        for place, _, files in sorted(os.walk(root)):
            inner = Path(place).relative_to(root)
            # What a restore put aside, and a ledger of drains, are none of slurmctld's.
            if inner.parts and not inner.parts[0].startswith((".", LEDGER)):
                _add_directory(tar, root, str(inner))
                for name in sorted(files):
                    _add_file(tar, root, str(inner / name))
    return _queue()


def _add_file(tar: tarfile.TarFile, root: Path, name: str) -> None:
    """Adds a file as it is when it is opened, which no slurmctld changes any more; none that is gone."""
    path = root / name
    for _ in range(_PAUSES):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            content, about = file.read(), os.fstat(file.fileno())
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(content), about.st_mode & 0o777, int(about.st_mtime)
            tar.addfile(entry, io.BytesIO(content))
            return
        if not any(path.with_name(path.name + ending).exists() for ending in (".new", ".old")):
            return
        time.sleep(_PAUSE)


def _add_directory(tar: tarfile.TarFile, root: Path, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        about = (root / name).stat()
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, about.st_mode & 0o777, int(about.st_mtime)
        tar.addfile(entry)


def _queue() -> dict[str, Any]:
    """The ids of the jobs that Slurm has, and the next; empty where slurmctld does not answer."""
    try:
        listed = must("timeout", "15", "squeue", "--noheader", "--all", "--format", "%A|%T|%K")
        shown = must("timeout", "15", "scontrol", "show", "config")
    except (NoBackupError, OSError):
        return {}
    rows = [line.strip().split("|") for line in listed.splitlines() if "|" in line]
    # One row has all tasks of an array that wait: each gets an id of its own when it starts.
    waiting = {int(job): task for job, state, task in rows if state == "PENDING"}
    following = re.search(r"^NEXT_JOB_ID\s*=\s*(\d+)", shown, re.MULTILINE)
    return {
        "running": sorted({int(job) for job, state, _ in rows if state != "PENDING"}),
        "waiting": sorted(waiting),
        "arrays": sorted(job for job, task in waiting.items() if task != _NO_TASK),
        "next_job_id": int(following[1]) if following else None,
    }


def associations(lines: Sequence[str]) -> list[list[Any]]:
    """What ``SHARES`` printed, row by row."""
    rows = [[field.strip() for field in line.split("|")] for line in lines]
    return [[*row[:3], int(row[3] or 0)] for row in rows if len(row) == _OF_SHARES]


def fair_share() -> dict[str, Any]:
    """Associations, their shares and usage, and how many CPUs there are; empty if slurmctld does not answer.

    A row is account, user (empty for that of an account), shares as sshare has them, usage in CPU seconds.
    """
    try:
        told = must("timeout", "15", *SHARES)
        cpus = must("timeout", "15", "sinfo", "--noheader", "--all", "--format", "%C")
    except (NoBackupError, OSError):
        return {}
    return {
        "associations": sorted(associations(told.splitlines())),
        "cpus": sum(int(line.rpartition("/")[2]) for line in cpus.split()),
    }


def database(members: Members, name: str) -> dict[str, Any]:
    """Adds a dump of the accounting database, which was loaded into a server of its own and counted there."""
    before = counts(name)
    (size,) = rows(f"SELECT COALESCE(SUM(data_length + index_length), 0) {_OF_TABLES.format(name)}")
    with throwaway(name, int(float(size))) as server:
        with (
            members.pieces(DATABASE) as out,
            gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6) as packed,
        ):
            _dump(name, packed, server)
        loaded = counts(name, *server)
    after = counts(name)
    compare(before, loaded, after)
    (version,) = rows("SELECT VERSION()")
    return {"name": name, "mariadb": version, "bytes": int(float(size)), **loaded}


def compare(before: Mapping[str, Any], loaded: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raises NoBackupError where what was loaded is not what the database had meanwhile."""
    if loaded["tables"] not in (before["tables"], after["tables"]):
        give_up(f"the dump has {loaded['tables']} tables when it is loaded, the database {after['tables']}")
    for what in ("jobs", "associations"):
        low, high = sorted((before[what], after[what]))
        if not low <= loaded[what] <= high:
            give_up(f"the dump has {loaded[what]} {what} when it is loaded, the database {low} to {high}")


def counts(name: str, *server: str) -> dict[str, int]:
    """How many tables, jobs and associations a database has, on the host's own server or another."""
    listed = tables(name, *server)
    found = {}
    for what, ending in (("jobs", "_job_table"), ("associations", "_assoc_table")):
        of_clusters = [table for table in listed if table.endswith(ending)]
        found[what] = sum(int(rows(_COUNT.format(name, table), *server)[0]) for table in of_clusters)
    return {"tables": len(listed), **found}


def tables(name: str, *server: str) -> list[str]:
    """The names of a database's tables."""
    return rows(f"SELECT table_name {_OF_TABLES.format(name)}", *server)


def rows(statement: str, *server: str) -> list[str]:
    """The rows that the host's own server answers, or another."""
    words = ("mariadb", *server, "--batch", "--skip-column-names", "--execute", statement)
    return must(*words).splitlines()


@contextlib.contextmanager
def input_of(process: subprocess.Popen[bytes]) -> Iterator[BinaryIO]:
    """What is written into it, which is closed at the end; who is gone by then says why at its own end."""
    assert process.stdin is not None  # noqa: S101 - it was asked for
    try:
        with contextlib.suppress(BrokenPipeError):
            yield process.stdin
    finally:
        # What is left in the buffer is written now.
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _dump(name: str, packed: gzip.GzipFile, server: Iterable[str]) -> None:
    """Dumps the database, and loads what was dumped while it comes."""
    words = ("--single-transaction", "--quick", "--hex-blob", "--no-tablespaces", "--max-allowed-packet=1G")
    with tempfile.TemporaryFile() as said:
        dump = subprocess.Popen(
            ("mariadb-dump", *words, name), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=said
        )
        load = subprocess.Popen(
            ("mariadb", *server, "--max-allowed-packet=1G", name),
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        with dump, load:
            last = b""
            with input_of(load) as loaded:
                for block in iter(lambda: dump.stdout.read(BLOCK), b""):  # type: ignore[union-attr]
                    packed.write(block)
                    loaded.write(block)
                    last = (last + block)[-200:]
        said.seek(0)
        why = said.read().decode(errors="replace").strip()
    if dump.returncode or load.returncode or _LAST_LINE not in last:
        verb = "load the dump" if load.returncode else f"dump the database {name}"
        give_up(f"MariaDB could not {verb}: {why or 'it ended too early'}")


def need_room(place: str, size: int, what: str) -> None:
    """Raises NoBackupError where a database of this size (0 where that is not known) has no room there."""
    needed, free = size * 2 + _NEEDED_BYTES, shutil.disk_usage(place).free
    if free < needed:
        give_up(f"{place} has {free >> 20} MiB free; {what} takes {needed >> 20}")


@contextlib.contextmanager
def throwaway(name: str, size: int) -> Iterator[tuple[str, ...]]:
    """A server with an empty database of that name, which only root reaches, by its socket; its options.

    ``size`` is how many bytes it shall have room for.
    """
    need_room(str(PLACE), size, "loading the dump to verify it")
    place = Path(tempfile.mkdtemp(prefix="backup-", dir=PLACE))
    owner = pwd.getpwnam("mysql")
    try:
        os.chown(place, owner.pw_uid, owner.pw_gid)
        data, socket = place / "data", place / "socket"
        own = ("--no-defaults", "--user=mysql", f"--datadir={data}")
        must("mariadb-install-db", *own, "--auth-root-authentication-method=socket", "--skip-test-db")
        settings = (
            f"--socket={socket}",
            f"--pid-file={place / 'pid'}",
            f"--log-error={place / 'log'}",
            "--skip-networking",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=128M",
            "--max-allowed-packet=1G",
        )
        with subprocess.Popen(
            ("mariadbd", *own, *settings),
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as server:
            try:
                _wait_for(server, socket, place / "log")
                client = ("--no-defaults", f"--socket={socket}")
                must("mariadb", *client, "--execute", f"CREATE DATABASE `{name}`")
                yield client
            finally:
                server.terminate()
    finally:
        shutil.rmtree(place)


def _wait_for(server: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(NoBackupError):
            must("mariadb-admin", "--no-defaults", f"--socket={socket}", "ping")
            return
        time.sleep(0.1)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    give_up(f"the server that shall verify the dump does not start: {' / '.join(lines[-2:])}")


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One backup at a time; what one left that was killed is taken away."""
    PLACE.mkdir(mode=0o755, parents=True, exist_ok=True)
    with open(PLACE / _LOCK, "w") as lock:  # noqa: PTH123 - 3.9 flocks what open gives
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            give_up("another backup of this cluster is being made")
        for left in PLACE.glob("backup-*"):
            shutil.rmtree(left)
        yield


def records() -> Iterator[tuple[str, bytes]]:
    """What deploy keeps on a controller: the hosts of the cluster, and the drains, which several share."""
    with contextlib.suppress(FileNotFoundError):
        yield HOSTS, (PLACE / HOSTS).read_bytes()
    try:
        shared = json.loads((PLACE / POINTER).read_text(encoding="utf-8"))["directory"]
    except FileNotFoundError:
        shared = None
    handle = os.open(shared or PLACE, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        about = os.fstat(handle)
        if shared and (about.st_uid != os.geteuid() or about.st_mode & 0o077):
            give_up(f"{shared}, which should have the ledger of drains, is not root's alone")
        with contextlib.suppress(FileNotFoundError):
            yield DRAINS, Path(f"/proc/self/fd/{handle}", DRAINS).read_bytes()
    finally:
        os.close(handle)


def add_parts(members: Members, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Adds what ``parts`` names: ``state`` a directory, ``database`` a name; the part of the manifest.

    Either may be on another host, and is left out then. What a controller keeps goes with its state; what
    roles remember of what they gave goes with what has it.
    """
    said: dict[str, Any] = {}
    with alone():
        for part, name in GIVEN.items():
            if part in parts:
                with contextlib.suppress(FileNotFoundError):
                    members.add(f"{RECORDS}/{name}", (PLACE / name).read_bytes())
        if "state" in parts:
            for name, content in records():
                members.add(f"{RECORDS}/{name}", content)
            said["slurm"] = must("slurmctld", "-V").strip()
            said["queue"] = state(members, parts["state"])
            said["fair_share"] = fair_share()
        if "database" in parts:
            said["database"] = database(members, parts["database"])
    return said


def has_state(parts: Mapping[str, Any]) -> None:
    """Raises NoBackupError where this host has no state that a backup could keep."""
    if not Path(parts["state"], _JOBS).exists():
        give_up(f"{parts['state']} has no {_JOBS}")


def described(cluster: str, version: str, made_by: str, now: float) -> dict[str, Any]:
    """What a manifest begins with."""
    return {"format": FORMAT, "cluster": cluster, "deploy": version, "made_by": made_by, "made_at": int(now)}


def name_of(cluster: str, now: float, *, by_timer: bool = False) -> str:
    """The name of the archive's file."""
    return f"{cluster}-{time.strftime(_WHEN, time.gmtime(now))}{_BY_TIMER if by_timer else ''}.age"


def archives(names: Iterable[str], cluster: str) -> dict[str, float]:
    """Those of these files that are a cluster's archives, with when each was begun, oldest first."""
    found = {}
    for name in names:
        match = _NAME.fullmatch(name)
        if match and match["cluster"] == cluster:
            found[name] = float(calendar.timegm(time.strptime(match["when"], _WHEN)))
    return dict(sorted(found.items(), key=lambda item: item[1]))


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def outlived(found: Mapping[str, float], keep: Mapping[str, int]) -> list[str]:
    """Which of these archives are kept no more.

    The last one of each of the last days that have one is kept, and of each of the last weeks, and all that
    were made within a day of the newest; of the timer's, and of the others.
    """
    kept: set[str] = set()
    for by_timer in (True, False):
        own = {name: when for name, when in found.items() if name.endswith(f"{_BY_TIMER}.age") == by_timer}
        newest = max(own.values(), default=0.0)
        kept.update(name for name, when in own.items() if when > newest - _DAY)
        for count, form in ((keep["daily"], "%Y-%m-%d"), (keep["weekly"], "%G-%V")):
            last = {
                time.strftime(form, time.gmtime(when)): name
                for name, when in sorted(own.items(), key=lambda item: item[1])
            }
            kept.update([*last.values()][-count:] if count else ())
    return [name for name in found if name not in kept]


def _begun(beside: Path) -> int:
    """A new file, locked as long as somebody has it open, which a program that is killed has not."""
    while True:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        # Some file systems have no locks, and then nothing is ever taken away there.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor
        # Another one took it away before it was locked.
        os.close(descriptor)


def _remove_left(archive: Path) -> None:
    """Removes what unfinished archives of the same cluster left beside it that nobody writes any more."""
    ours = _NAME.fullmatch(archive.name)
    for path in archive.parent.iterdir() if ours else ():
        left = _UNFINISHED_NAME.fullmatch(path.name)
        if ours and left and archives([left["archive"]], ours["cluster"]):
            with contextlib.suppress(OSError):
                descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
                finally:
                    os.close(descriptor)


@contextlib.contextmanager
def encrypted(path: Path, recipients: Iterable[str]) -> Iterator[BinaryIO]:
    """What is written into it is encrypted into a file, which gets its name when it is whole and on disk.

    What one that was killed left beside it is removed before, to have its room.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    words = [word for recipient in recipients for word in ("-r", recipient)]
    _remove_left(path)
    descriptor = _begun(beside)
    try:
        with tempfile.TemporaryFile() as said:
            with (
                subprocess.Popen(
                    ("age", *words), env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=descriptor, stderr=said
                ) as age,
                input_of(age) as plain,
            ):
                try:
                    yield plain
                except BrokenPipeError:
                    raise
                except BaseException:
                    age.kill()
                    raise
            said.seek(0)
            why = said.read().decode(errors="replace").strip()
        if age.returncode:
            give_up(f"{path.parent}: {why or 'age ended too early'}")
        os.fsync(descriptor)
        beside.replace(path)
        _keep_names(path.parent)
    finally:
        os.close(descriptor)
        beside.unlink(missing_ok=True)


def _keep_names(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def metrics(found: Mapping[str, float], directory: Path, alert_days: int) -> str:
    """The age and size of the newest archive, and how many there are, in Prometheus's text format."""
    newest = max(found, key=lambda name: found[name], default=None)
    values = {
        "deploy_backup_timestamp_seconds": (
            "When the newest backup was made; 0 where there is none.",
            found[newest] if newest else 0.0,
        ),
        "deploy_backup_size_bytes": (
            "The size of the newest backup.",
            (directory / newest).stat().st_size if newest else 0,
        ),
        "deploy_backup_count": ("How many backups there are.", len(found)),
        "deploy_backup_alert_age_seconds": (
            "The age from which on the newest backup is too old.",
            alert_days * _DAY,
        ),
    }
    lines = (
        f"# HELP {name} {meaning}\n# TYPE {name} gauge\n{name} {value}\n"
        for name, (meaning, value) in values.items()
    )
    return "".join(lines)


def by_timer(settings: Mapping[str, Any]) -> None:
    """Makes an archive of what this host has, removes those that outlived, leaves metrics."""
    directory, cluster, now = Path(settings["directory"]), settings["cluster"], time.time()
    try:
        # What it lies in is of the site's: where a mount is missing, nothing is made in its place.
        directory.mkdir(mode=0o700, exist_ok=True)
        with encrypted(directory / name_of(cluster, now, by_timer=True), settings["recipients"]) as out:
            members = Members(out)
            said = described(cluster, settings["version"], "the timer", now)
            members.end({**said, **add_parts(members, settings["parts"])})
        for name in outlived(archives(_names(directory), cluster), settings["keep"]):
            try:
                (directory / name).unlink(missing_ok=True)
            except OSError as problem:
                sys.stderr.write(f"the new one is whole; what outlived cannot be removed: {problem}\n")
    finally:
        if settings["metrics"] and directory.is_dir():
            file = Path(settings["metrics"])
            fresh = file.with_suffix(".new")
            text = metrics(archives(_names(directory), cluster), directory, settings["alert_days"])
            fresh.write_text(text, encoding="utf-8")
            fresh.chmod(0o644)
            fresh.replace(file)


def to_standard_output(parts: Mapping[str, Any]) -> None:
    """Writes the members of what this host has as a tar file."""
    members = Members(sys.stdout.buffer)
    members.end(add_parts(members, parts))
    sys.stdout.buffer.flush()


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Ends the program with a line that says why where there is no backup."""
    try:
        {"parts": to_standard_output, "has_state": has_state, "by_timer": by_timer}[verb](arguments)
    except (NoBackupError, OSError, KeyError, ValueError) as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(1)


if __name__ == "__main__":
    main("by_timer", json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))

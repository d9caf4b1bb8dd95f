"""What ``deploy restore`` does: of a backup and a controller that has nothing the cluster that was."""

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from deploy.durable import replace_file
from deploy.engine.alone import alone
from deploy.engine.backup import cluster_name, need_age, parts_of
from deploy.engine.database import answering_arbiter, serving
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.errors import DeployError, ExitCode, error, shown_path
from deploy.judge.age import age
from deploy.judge.lost_since import LostSince, lost_since
from deploy.run.archive import SITE, Archive, UnreadableError, made_by, read_archive, sources
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.sent_program import program
from deploy.run.ssh import NotByPlainSshError, Unanswered
from deploy.run.transfer import TransferError, transfer
from deploy.site.hardware import FILE_NAME
from deploy.site.inventory import SECRETS_FILE, Host, Site, existing_inventory
from deploy.site.node_lists import fold
from deploy.site.secrets import missing_secrets

STATE, DATABASE, SECRETS = "state", "database", "secrets"
PARTS = (DATABASE, STATE, SECRETS)
_OF_SECRETS = (SECRETS_FILE, FILE_NAME)
_AS_IT_WAS = "this part is as it was; put that right, and the same again"
_STOPPED = (
    "until then slurmctld and slurmdbd may be stopped on hosts of the restore; there "
    "systemctl start slurmdbd slurmctld goes on with what is there"
)
_IS_PUT = "the database is that of the backup already"
_ALL_STAYS, _PARTS_STAY = "nothing was changed", "neither state nor database was changed"
_DAY = 86400
_MARK = "deploy:"
# MAX_JOB_ID of slurm.h, which no site's MaxJobId exceeds.
_HIGHEST_JOB_ID = 0x03FFFFFF
# What hosts need before database and state are put there, with the mounts below which a state may be, and
# the firewalls of those that are left, which let a new address in by that: no daemon of Slurm's runs yet.
_BEFORE = "base,firewall,slurm_packages,munge,slurm_auth,mariadb_arbiter,mariadb,storage"


@dataclass(frozen=True)
class Wish:
    """Which backup, what of it, and how many days old it may be."""

    archive: Path
    identities: tuple[Path, ...]
    parts: frozenset[str] = frozenset(PARTS)
    max_age_days: int = 7


Deploys = Callable[[Options], None]
"""``deploy cluster`` on the same inventory; raises DeployError, or typer.Exit, where it fails."""


def restore(
    inventory: Path,
    wish: Wish,
    options: Options,
    *,
    agrees: Callable[[], bool],
    say: Callable[[str], None],
    deploys: Deploys,
) -> None:
    """Puts the parts of a backup in place, each before what reads it starts. Raises DeployError."""
    archive = opened_archive(inventory, wish)
    restore_archive(inventory, archive, wish, options, agrees=agrees, say=say, deploys=deploys)


def restore_archive(
    inventory: Path,
    archive: Archive,
    wish: Wish,
    options: Options,
    *,
    agrees: Callable[[], bool],
    say: Callable[[str], None],
    deploys: Deploys,
) -> None:
    """The same with a backup that was read to its end."""
    with _at_work(inventory, options, say) as run:
        hosts = _Hosts(run, archive)
        refuse_other(hosts.site, archive)
        found = hosts.look() if wish.parts != {SECRETS} else {}
        lost = _lost(run, archive, say) if STATE in wish.parts else LostSince()
        _tell(archive, lost, say)
        losses = [*_losses(found, lost, wish), *_replaced(run.site, archive, wish)]
        for line in losses:
            say(line)
        if losses and not agrees():
            raise _not_agreed()
        _put_site_files(run, archive, wish, say)
        if wish.parts == {SECRETS}:
            return
        if found["programs"]:
            hosts.put(wish.parts, lost.least_job_id, say)
    if not found["programs"]:
        deploys(replace(options, limit=",".join(hosts.names), tags=_BEFORE))
        with _at_work(inventory, options, say) as run:
            hosts = _Hosts(run, archive)
            came = [line for line in _put_aside(hosts.look(), wish) if line not in losses]
            for line in came:
                say(line)
            if came and not agrees():
                raise _not_agreed(_PARTS_STAY)
            hosts.put(wish.parts, lost.least_job_id, say, are_new=True)
    deploys(options)


def try_restore(inventory: Path, wish: Wish, options: Options, say: Callable[[str], None]) -> None:
    """Says what ``restore`` would do; loads everything in places that vanish, and changes nothing else."""
    archive = opened_archive(inventory, wish)
    with opened(inventory, options, needs_ansible=False) as run:
        hosts = _Hosts(run, archive)
        refuse_other(hosts.site, archive)
        found = hosts.look()
        lost = _lost(run, archive, say) if STATE in wish.parts else LostSince()
        _tell(archive, lost, say)
        for line in [*_losses(found, lost, wish), *_replaced(run.site, archive, wish)]:
            say(line)
        if STATE in wish.parts:
            answer = hosts.send("try_state", made_by().STATE, {"least": lost.least_job_id})
            say(f"the state can be read; it has the scripts of {answer['scripts']} jobs")
        if DATABASE in wish.parts and found["has_database"]:
            arguments = {
                "name": archive.manifest["database"]["name"],
                "expected": _counts(archive),
                "size": _size(archive),
            }
            hosts.send("try_database", made_by().DATABASE, arguments, hosts.database)
            say(f"the database can be loaded; it has {archive.manifest['database']['jobs']} jobs")
        elif DATABASE in wish.parts:
            say(f"the database was not loaded: {hosts.why_no_database(found)}")


def opened_archive(inventory: Path, wish: Wish) -> Archive:
    """A backup, read to its end. Raises DeployError ``backup-unreadable``, ``backup-old``."""
    existing_inventory(inventory)
    need_age()
    where = shown_path(wish.archive)
    try:
        archive = read_archive(wish.archive, wish.identities)
    except (UnreadableError, OSError) as problem:
        raise error(
            "backup-unreadable",
            f"this is no whole backup, or it was made for another key: {problem}",
            where=where,
            hint=f"take another: deploy backup {shown_path(inventory)} --list",
        ) from None
    seconds = time.time() - archive.manifest["made_at"]
    if seconds > wish.max_age_days * _DAY:
        raise error(
            "backup-old",
            f"it was made {age(seconds)} ago ({_moment(archive)}), and has no job or account since then"
            f"{_of_then(archive)}",
            where=where,
            hint=f"take a newer one: deploy backup {shown_path(inventory)} --list; or go on with "
            f"--max-age {int(seconds // _DAY) + 1}",
        )
    return archive


def refuse_other(site: Site, archive: Archive) -> None:
    """Raises DeployError ``backup-of-other-cluster``."""
    theirs, ours = archive.manifest["cluster"], cluster_name(site)
    if theirs != ours:
        raise error(
            "backup-of-other-cluster",
            f"it is of the cluster {theirs}, and this site is {ours}",
            where=shown_path(archive.path),
            hint=f"take a backup of {ours}; or set slurmctld_cluster_name: {theirs}",
        )


def _of_then(archive: Archive) -> str:
    following = archive.manifest["queue"].get("next_job_id")
    return f"; the next job was {following} then" if following else ""


def _moment(archive: Archive) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(archive.manifest["made_at"]))


def _replaced(site: Site, archive: Archive, wish: Wish) -> list[str]:
    """In lines the files of the site that would be replaced: only where that alone is asked for."""
    if wish.parts != {SECRETS}:
        return []
    kept = archive.files(SITE)
    there = {name: _content(site.directory / name) for name in _OF_SECRETS if name in kept}
    return [
        f"{shown_path(site.directory / name)} is replaced by that of the backup"
        for name, content in there.items()
        if content not in (None, kept[name])
    ]


def _put_site_files(run: Run, archive: Archive, wish: Wish, say: Callable[[str], None]) -> None:
    """Gives the site the secrets and the hardware of the backup; what it has stays, unless that is asked for.

    Raises DeployError ``backup-without-secrets``.
    """
    directory, kept = run.site.directory, archive.files(SITE)
    is_named = SECRETS in wish.parts and wish.parts != {*PARTS}
    if is_named and not any(name in kept for name in _OF_SECRETS):
        raise error(
            "backup-without-secrets",
            f"it has neither {SECRETS_FILE} nor {FILE_NAME}, as one that the controller made by itself",
            where=shown_path(archive.path),
            hint="take one that deploy backup made, or restore other parts",
        )
    missing = missing_secrets(run.site, run.options.vault_password_file)
    if missing and (SECRETS_FILE not in kept or SECRETS not in wish.parts):
        raise error(
            "backup-without-secrets",
            f"the site has no {', '.join(missing)}, and is given none: a backup that the controller made by "
            "itself has no secrets.yml, and nodes would refuse new ones",
            where=shown_path(archive.path),
            hint=f"put secrets.yml into {shown_path(directory)}, or restore secrets, too, of a backup that "
            "deploy backup made",
        )
    for name in _OF_SECRETS if SECRETS in wish.parts else ():
        is_wanted = wish.parts == {SECRETS} or not (directory / name).exists()
        if name in kept and is_wanted and _content(directory / name) != kept[name]:
            replace_file(directory / name, kept[name].decode())
            say(f"{shown_path(directory / name)}: that of the backup")
    if stay := [name for name in sorted(kept) if _content(directory / name) != kept[name]]:
        say(f"not as in the backup, and stay as they are: {', '.join(stay)}")


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


@contextmanager
def _at_work(inventory: Path, options: Options, say: Callable[[str], None]) -> Iterator[Run]:
    """The site's run, while nobody else is at work on the cluster."""
    with (
        opened(inventory, options, needs_ansible=False) as run,
        site_lock(state_directory(run.site.directory)),
        alone(replace(run, say=say), lambda _: None, is_needed=True),
    ):
        yield run


@dataclass(frozen=True)
class _Hosts:
    """The controllers and the database's hosts that a backup is put on (DeployError ``restore-failed``).

    Several controllers have one state, in a directory that all mount. Of several hosts of the database one
    gets what is in the backup, and the others get it from that one.
    """

    run: Run
    archive: Archive

    @property
    def site(self) -> Site:
        return self.run.site.resolved

    @cached_property
    def serving(self) -> list[Host]:
        """Of several hosts of the database those that go on; its one host, whether it does or not."""
        site = self.site
        return serving(site, self.run.options) if site.database_arbiter else [site.database_host]

    @property
    def database(self) -> Host:
        """The host whose MariaDB gets the database."""
        return self.serving[0] if self.serving else self.site.database_host

    @property
    def others(self) -> list[Host]:
        """Those that get it from there."""
        return [host for host in self.site.database_hosts if host != self.database]

    @property
    def all(self) -> tuple[Host, ...]:
        hosts = (*self.site.controllers, *self.site.database_hosts)
        return tuple({host.name: host for host in hosts}.values())

    @property
    def names(self) -> list[str]:
        """With the arbitrator, who has to end its group where a member of the database begins."""
        hosts = (*self.all, *answering_arbiter(self.site, self.run.options))
        return [*dict.fromkeys(host.name for host in hosts)]

    @property
    def are_apart(self) -> bool:
        """Whether queue and database are on more than one host."""
        return len(self.all) > 1

    @property
    def when(self) -> str:
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())

    def look(self) -> dict[str, Any]:
        """What they have already; all of them are asked before anything is changed."""
        found = {host.name: self.send("look", "", parts_of(self.site), host) for host in self.all}
        if not self.are_apart:
            (answer,) = found.values()
            return {**answer, "has_database": answer["programs"]}
        of_controllers = [found[host.name] for host in self.site.controllers]
        have_server = all(found[host.name]["server"] for host in self.site.database_hosts)
        has_database = have_server and bool(self.serving)
        return {
            "daemons": [f"{daemon} on {name}" for name, said in found.items() for daemon in said["daemons"]],
            "state": any(said["state"] for said in of_controllers),
            "jobs": found[self.database.name]["jobs"],
            "have_server": have_server,
            "has_database": has_database,
            "programs": has_database and all(said["slurmctld"] for said in of_controllers),
        }

    def why_no_database(self, found: Mapping[str, Any]) -> str:
        """Why a database cannot be loaded, by what `look` found."""
        names = fold(host.name for host in self.site.database_hosts)
        if found.get("have_server"):
            return f"MariaDB serves on none of {names}; deploy restore begins with one of them"
        return f"{names} has no MariaDB yet"

    def put(
        self, parts: Collection[str], least: int, say: Callable[[str], None], *, are_new: bool = False
    ) -> None:
        """Puts the database and the state onto hosts that have their programs.

        Of several, every slurmctld is stopped first: one that stands by would take over, and write.
        """
        for host in self.all if self.are_apart else ():
            self.send("stop", "", {}, host)
        if DATABASE in parts:
            say(self.put_database())
            self._put_given(DATABASE, self.site.accounting_hosts)
        if STATE in parts:
            say(self.put_state(least, are_new=are_new, after=f"{_IS_PUT}; " if DATABASE in parts else ""))

            self._put_given(STATE, self.site.controllers)

    def _put_given(self, part: str, hosts: Iterable[Host]) -> None:
        """What is declared no more, and came back with a part, is taken away by the next run."""
        made = made_by()
        name = made.GIVEN[part]
        if text := self.archive.files(made.RECORDS).get(name):
            for host in hosts:
                self.send("put_given", "", {"name": name, "text": text.decode()}, host)

    def put_state(self, least: int, *, are_new: bool, after: str = "") -> str:
        made = made_by()
        records = {
            name: text.decode()
            for name, text in self.archive.files(made.RECORDS).items()
            if name not in made.GIVEN.values()
        }
        arguments = {"least": least, "records": records, "when": self.when, "is_new": are_new}
        directory = parts_of(self.site)["state"]
        hint = f"{_AS_IT_WAS}; {after}{_STOPPED}"
        answer = self.send("put_state", made.STATE, {"directory": directory, **arguments}, hint=hint)
        said = f"state: {directory} is that of the backup{_aside(answer)}"
        if answer["are_ids_known"]:
            return said
        return f"{said}; its list of jobs is broken, so ids of jobs since the backup may be given again"

    def put_database(self) -> str:
        name, expected = parts_of(self.site)["database"], _counts(self.archive)
        size = _size(self.archive)
        arguments = {"name": name, "expected": expected, "when": self.when, "size": size}
        with self._others_aside(name, expected):
            hint = f"{_AS_IT_WAS}; {_STOPPED}"
            answer = self.send("put_database", made_by().DATABASE, arguments, self.database, hint=hint)
        copied = f", and so has {fold(host.name for host in self.others)}" if self.others else ""
        return f"database: {name} has the {expected['jobs']} jobs of the backup{copied}{_aside(answer)}"

    @contextmanager
    def _others_aside(self, name: str, expected: Mapping[str, int]) -> Iterator[None]:
        """The other members are stopped while one is loaded, get its rows afterwards, and are counted.

        Where it was not loaded they come back to what it has.
        """
        for host in self.others:
            self.send("leave", "", {}, host)
        try:
            yield
        except DeployError:
            for host in self.others:
                with suppress(DeployError):
                    self.send("join", "", {"name": name, "expected": {}}, host)
            raise
        for host in self.others:
            self.send("join", "", {"name": name, "expected": expected}, host)

    def send(
        self,
        verb: str,
        member: str,
        arguments: Mapping[str, Any],
        host: Host | None = None,
        *,
        hint: str = _AS_IT_WAS,
    ) -> dict[str, Any]:
        """A host's answer to a verb of the program restore.py, which gets a member of the archive.

        It is the first controller where nobody is named.
        """
        host = host or self.site.controller
        try:
            with transfer(host, self.run.options.login, program(sources(), verb, arguments)) as process:
                assert process.stdin  # noqa: S101 - transfer asked for them
                assert process.stdout  # noqa: S101
                for piece in self.archive.pieces(member) if member else ():
                    process.stdin.write(piece)
                process.stdin.close()
                said = process.stdout.read().decode()
        except (TransferError, NotByPlainSshError, UnreadableError) as problem:
            raise error(
                "restore-failed",
                f"{verb}: {problem}",
                where=host.name,
                hint=hint,
                exit_code=ExitCode.UNREACHABLE,
            ) from None
        line = next(line for line in said.splitlines() if line.startswith(_MARK))
        return dict(json.loads(line.removeprefix(_MARK)))


def _aside(answer: Mapping[str, Any]) -> str:
    return f"; what was there is {answer['aside']}" if answer["aside"] else ""


def _counts(archive: Archive) -> dict[str, int]:
    return {what: archive.manifest["database"][what] for what in ("tables", "jobs", "associations")}


def _size(archive: Archive) -> int:
    """The bytes of the database; 0 where a backup does not say it, as those that an older deploy made."""
    return int(archive.manifest["database"].get("bytes", 0))


def _lost(run: Run, archive: Archive, say: Callable[[str], None]) -> LostSince:
    """Asks the nodes what they run, and compares it with the queue of the backup."""
    nodes = {host.name: host for host in run.site.nodes}
    answers = run.members.ask({name: ("steps", {}) for name in nodes}, nodes)
    running: dict[str, Collection[int]] = {}
    for name, answer in answers.items():
        if isinstance(answer, Unanswered):
            say(f"{name}: does not answer, so what it runs is not known here: {answer.why}")
        else:
            running[name] = _job_ids(answer)
    return lost_since(archive.manifest["queue"], running)


def _job_ids(steps: Iterable[str]) -> set[int]:
    """The jobs of steps as job_steps has them: ``12.batch``, ``12.0``."""
    found = (int(match[0]) for step in steps if (match := re.match(r"\d{1,9}(?!\d)", step)))
    return {job for job in found if job <= _HIGHEST_JOB_ID}


def _losses(found: Mapping[str, Any], lost: LostSince, wish: Wish) -> Iterator[str]:
    """What is lost, in lines."""
    if found.get("daemons"):
        yield f"stopped, and started again at the end: {', '.join(found['daemons'])}"
    yield from _put_aside(found, wish)
    yield from lost.losses()


def _put_aside(found: Mapping[str, Any], wish: Wish) -> Iterator[str]:
    """What is there in the place of what is put there, in lines."""
    if STATE in wish.parts and found.get("state"):
        yield "there is a state, which is put aside: jobs submitted since the backup are lost"
    if DATABASE in wish.parts and found.get("jobs"):
        yield f"there is a database with {found['jobs']} jobs, which is put aside"


def _tell(archive: Archive, lost: LostSince, say: Callable[[str], None]) -> None:
    """Says what the backup is, and what goes on."""
    say(f"backup of {_moment(archive)}, by {archive.manifest['made_by']}{_of_then(archive)}")
    for line in lost.notes():
        say(line)


def _not_agreed(unchanged: str = _ALL_STAYS) -> DeployError:
    return error(
        "restore-not-agreed",
        f"{unchanged}: what is said above would be lost",
        hint="read it, and go on with --yes; --check tries it all and changes nothing",
        exit_code=ExitCode.CHANGES_PENDING,
    )

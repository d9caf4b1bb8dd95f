"""What ``deploy backup`` does: one encrypted archive of Slurm's queue, its accounting and the site."""

import json
import shutil
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from deploy import __version__
from deploy.engine.database import with_rows
from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.errors import DeployError, ExitCode, error
from deploy.run.archive import SITE, made_by, sources, unpacked
from deploy.run.archive_places import PART, Local, Place, PlaceError, place
from deploy.run.sent_program import program
from deploy.run.ssh import NotByPlainSshError
from deploy.run.transfer import TransferError, transfer
from deploy.site import own_files
from deploy.site.backups import without_recipients
from deploy.site.hardware import FILE_NAME
from deploy.site.inventory import SECRETS_FILE, Host, Site
from deploy.site.node_lists import fold

DIRECTORY = own_files.BACKUPS
_DAY = 86400
_OF_VARIABLES = ("group_vars", "host_vars")


@dataclass(frozen=True)
class Kept:
    """A backup: its file, when it was begun (seconds since 1970), and its size in bytes."""

    file: str
    when: float
    size: int


@dataclass(frozen=True)
class Made:
    """A backup that was made, by its manifest; ``removed`` are those that outlived ``backup_keep``.

    ``left`` says why some of them are there still.
    """

    kept: Kept
    manifest: Mapping[str, Any]
    removed: tuple[str, ...]
    left: str = ""


def make_backup(inventory: Path, to: str | None, options: Options) -> Made:
    """Makes a backup in a place, by default ``backups`` beside the inventory. Raises DeployError."""
    with opened(inventory, options, needs_ansible=False) as run:
        site = run.site.resolved
        recipients = [str(recipient) for recipient in site.controller.value("backup_recipients")]
        if not recipients:
            raise DeployError(without_recipients(site.controller.where("backup_recipients")))
        need_age()
        kept, cluster = _place(site, to), cluster_name(site)
        now, made = time.time(), made_by()
        name = made.name_of(cluster, now)
        try:
            with kept.filled() as directory, made.encrypted(directory / name, recipients) as out:
                members = made.Members(out)
                for file, content in site_files(site):
                    members.add(f"{SITE}/{file}", content)
                manifest = made.described(cluster, __version__, "deploy backup", now)
                # The state goes first: the database then has every row that it refers to.
                for host, parts in _sources(site, options):
                    manifest |= _add_parts(members, host, parts, options)
                members.end(manifest)
        except (made.NoBackupError, OSError, PlaceError) as problem:
            raise _none_made(str(problem), str(kept)) from None
        sizes = _sizes(kept, f"{name} is whole, and the others")
        found = made.archives(sizes, cluster)
        outlived, left = made.outlived(found, site.controller.value("backup_keep")), ""
        try:
            kept.remove([*outlived, *cut_off(sizes, cluster, now)])
        except (OSError, PlaceError) as problem:
            left = f"the new one is whole; what outlived backup_keep cannot be removed from {kept}: {problem}"
        return Made(
            Kept(kept.of(name), found[name], sizes[name]), manifest, () if left else tuple(outlived), left
        )


def kept_backups(inventory: Path, to: str | None, options: Options) -> tuple[Kept, ...]:
    """The backups of a site's cluster in a place, oldest first. Raises DeployError."""
    with opened(inventory, options, needs_ansible=False) as run:
        kept = _place(run.site, to)
        sizes = _sizes(kept, "the backups there")
        found = made_by().archives(sizes, cluster_name(run.site.resolved))
        return tuple(Kept(kept.of(name), when, sizes[name]) for name, when in found.items())


def _sizes(kept: Place, which: str) -> dict[str, int]:
    """The files of a place and their sizes. Raises DeployError ``backups-not-listed``."""
    try:
        return kept.sizes()
    except (OSError, PlaceError) as problem:
        message = f"{which} cannot be listed: {problem}"
        hint = "put that right, and the same again; nothing was removed"
        code = ExitCode.FAILED
        raise error("backups-not-listed", message, where=str(kept), hint=hint, exit_code=code) from None


def cut_off(names: Iterable[str], cluster: str, now: float) -> list[str]:
    """Those of these files that uploads of a cluster's archives left, which began over a day ago."""
    wholes = {name[1 : -len(PART)]: name for name in names if name.startswith(".") and name.endswith(PART)}
    return [wholes[name] for name, when in made_by().archives(wholes, cluster).items() if when < now - _DAY]


def _place(site: Site, to: str | None) -> Place:
    """Where backups are kept, by default beside the inventory. Raises DeployError ``invalid-option``."""
    if to is None:
        return Local(site.directory / DIRECTORY)
    try:
        return place(to)
    except ValueError as problem:
        hint = "as in --to /mnt/backups or --to keeper@vault.example.org:backups"
        raise error("invalid-option", f"{to!r} {problem}", where="--to", hint=hint) from None


def cluster_name(site: Site) -> str:
    """The cluster's name in Slurm."""
    return str(site.controller.value("slurmctld_cluster_name"))


def parts_of(site: Site) -> dict[str, str]:
    """Where a cluster has what a backup is made of."""
    return {
        "state": str(site.controller.value("slurmctld_state_save_location")),
        "database": str(site.database_host.value("slurmdbd_database_name")),
    }


def site_files(site: Site) -> Iterator[tuple[str, bytes]]:
    """The files by which a site could be made again: names beside the inventory, and contents."""
    base = site.directory
    tops = (
        [path for path in base.iterdir() if path.is_file()] if site.inventory.is_dir() else [site.inventory]
    )
    named = [base / name for name in (SECRETS_FILE, FILE_NAME) if (base / name).is_file()]
    inner = [path for name in _OF_VARIABLES for path in _below(base / name)]
    for path in sorted({*tops, *named, *inner}):
        if not path.name.startswith("."):
            yield str(path.relative_to(base)), path.read_bytes()


def _below(directory: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """All files in a directory, as Ansible finds them: through directories that are links, too."""
    if not directory.is_dir() or (real := directory.resolve()) in above:
        return
    for path in directory.iterdir():
        if path.is_file():
            yield path
        else:
            yield from _below(path, above | {real})


def need_age() -> None:
    """Raises DeployError ``age-missing`` where this machine has no age."""
    if not shutil.which("age"):
        raise error(
            "age-missing",
            "backups are encrypted and read by age, which this machine has not",
            hint="sudo apt install age   (other systems: https://age-encryption.org)",
        )


def _sources(site: Site, options: Options) -> list[tuple[Host, dict[str, str]]]:
    """The hosts that have parts of a backup, and which, in order. Raises DeployError ``backup-not-made``."""
    parts, database = parts_of(site), with_rows(site, options)
    controller = _with_state(site, options, parts)
    if controller == database:
        return [(controller, parts)]
    return [(controller, {"state": parts["state"]}), (database, {"database": parts["database"]})]


def _with_state(site: Site, options: Options, parts: Mapping[str, str]) -> Host:
    """The first controller that answers and has the state. Raises DeployError ``backup-not-made``."""
    if site.controllers == (site.controller,):
        return site.controller
    silent = []
    for controller in site.controllers:
        try:
            with transfer(controller, options.login, _program("has_state", parts)):
                pass
        except (TransferError, NotByPlainSshError) as problem:
            silent.append(f"{controller.name}: {problem}")
        else:
            return controller
    raise _none_made("; ".join(silent), fold(host.name for host in site.controllers), ExitCode.UNREACHABLE)


def _program(verb: str, parts: Mapping[str, str]) -> str:
    return program({"backup": sources()["backup"]}, verb, parts)


def _add_parts(
    members: Any,  # noqa: ANN401 - of the program
    host: Host,
    parts: Mapping[str, str],
    options: Options,
) -> dict[str, Any]:
    """Adds what a host has, as it comes, and compares it with what the host sent."""
    manifest: dict[str, Any] = {}
    before = {**members.sums}
    try:
        with transfer(host, options.login, _program("parts", parts)) as run:
            for name, content in unpacked(cast("BinaryIO", run.stdout)):
                if name == made_by().MANIFEST:
                    manifest = json.loads(content)
                else:
                    members.add(name, content)
    except (TransferError, tarfile.TarError, NotByPlainSshError) as problem:
        raise _none_made(str(problem), host.name, ExitCode.UNREACHABLE) from None
    sent = {name: digest for name, digest in members.sums.items() if name not in before}
    if manifest.pop("members", None) != sent:
        why = "what it sent is not what arrived here"
        raise _none_made(why, host.name, ExitCode.UNREACHABLE)
    return manifest


def _none_made(why: str, where: str, exit_code: ExitCode = ExitCode.FAILED) -> DeployError:
    return error(
        "backup-not-made",
        f"there is no new backup: {why}",
        where=where,
        hint="put that right, and the same again; what there was of backups is untouched",
        exit_code=exit_code,
    )

"""What ``deploy drill`` goes by before a machine is made: a site and a backup of it, each found right."""

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from deploy.engine.backup import DIRECTORY, cluster_name
from deploy.engine.options import Options
from deploy.engine.restore import (
    DATABASE,
    STATE,
    Deploys,
    Wish,
    opened_archive,
    refuse_other,
    restore_archive,
)
from deploy.errors import error, shown_path
from deploy.judge.last_drill import REPORT, REPORTS
from deploy.run.archive import SITE, Archive, made_by
from deploy.run.archive_places import Local
from deploy.site.inventory import SECRETS_FILE, Site

__all__ = ["REPORT", "REPORTS", "Archive", "about", "archive_of", "last_backup", "put_back", "restorable"]

_PARTS = frozenset({DATABASE, STATE})


def last_backup(site: Site, directory: Path | None) -> Path:
    """The newest backup of a site in a directory, by default ``backups`` beside the inventory.

    Raises DeployError ``drill-without-backup``.
    """
    place = directory or site.directory / DIRECTORY
    try:
        found = made_by().archives(Local(place).sizes(), cluster_name(site))
    except OSError as problem:
        raise _no_backup(site, place, f"cannot be read: {problem.strerror}") from None
    if not found:
        raise _no_backup(site, place, f"has no backup of the cluster {cluster_name(site)}")
    return place / str([*found][-1])


def _no_backup(site: Site, place: Path, why: str) -> Exception:
    return error(
        "drill-without-backup",
        f"this directory {why}: there is nothing to restore",
        where=shown_path(place),
        hint=f"make one: deploy backup {shown_path(site.inventory)}; or name the file of one, or with --from "
        "the directory that has them",
    )


def archive_of(site: Site, path: Path, identities: tuple[Path, ...], max_age_days: int) -> Archive:
    """A backup, read to its end, that a restore of this site takes. Raises DeployError as a restore does."""
    archive = opened_archive(site.inventory, Wish(path, identities, _PARTS, max_age_days))
    refuse_other(site, archive)
    return archive


def restorable(archive: Archive) -> tuple[Archive, str | None]:
    """A backup with nothing in it that names machines of the site, and the text of its secrets.yml."""
    secrets = archive.files(SITE).get(SECRETS_FILE)
    return replace(archive, small={}), secrets.decode() if secrets is not None else None


def put_back(
    inventory: Path, archive: Archive, options: Options, *, say: Callable[[str], None], deploys: Deploys
) -> None:
    """Restores state and database as ``deploy restore`` does, on machines that nobody works on."""
    wish = Wish(archive.path, archive.identities, _PARTS)
    restore_archive(inventory, archive, wish, options, agrees=lambda: True, say=say, deploys=deploys)


def about(archive: Archive) -> dict[str, Any]:
    """What a backup is, for a report."""
    manifest: Mapping[str, Any] = archive.manifest
    with archive.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "file": shown_path(archive.path),
        "sha256": digest,
        "bytes": archive.path.stat().st_size,
        "made_at": manifest["made_at"],
        "age_seconds": round(time.time() - manifest["made_at"]),
        "made_by": manifest["made_by"],
        "deploy": manifest["deploy"],
        "slurm": manifest.get("slurm"),
        "mariadb": manifest["database"].get("mariadb"),
        "verified_parts": len(manifest["members"]),
        "has_secrets": f"{SITE}/{SECRETS_FILE}" in archive.small,
    }

"""A new site is made whole or not at all."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from deploy.durable import replace_file
from deploy.errors import error
from deploy.site.hardware import FILE_NAME as HARDWARE
from deploy.site.inventory import SECRETS_FILE, Site
from deploy.site.secrets import fill_secrets
from deploy.site.starter import INVENTORY

_IGNORED = ".gitignore"
_MADE_BY_RUNS = (SECRETS_FILE, HARDWARE, "host_vars", ".deploy")


def create_site(directory: Path, files: Mapping[str, str], vault_password_file: Path | None = None) -> None:
    """Makes a directory a site: these files (path below it -> text) and new secrets.

    What git ignores there already it goes on to ignore. Raises DeployError ``site-exists`` or
    ``site-not-made``; then nothing is there that was not before.
    """
    new = {name: text for name, text in files.items() if name != _IGNORED or not _is_file(directory / name)}
    _refuse(directory, {Path(name).parts[0] for name in new} | set(_MADE_BY_RUNS))
    with (
        _os_errors_explained(directory),
        _workshop(directory) as workshop,
        _ignoring(directory / _IGNORED, "" if _IGNORED in new else files.get(_IGNORED, "")),
    ):
        for name, text in new.items():
            path = workshop / name
            path.parent.mkdir(exist_ok=True)
            replace_file(path, text, 0o644)
        fill_secrets(Site(workshop / INVENTORY, hosts={}, groups={}), vault_password_file)
        _hand_over(workshop, directory)


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


@contextmanager
def _ignoring(path: Path, text: str) -> Iterator[None]:
    """Adds lines to a file that is there, before there is anything that they are for."""
    before = path.read_text(encoding="utf-8", errors="surrogateescape") if text else ""
    missing = [line for line in text.splitlines() if line not in before.splitlines()]
    mode = path.stat().st_mode & 0o777 if missing else 0
    if missing:
        end = "" if before.endswith("\n") or not before else "\n"
        replace_file(path, "\n".join([f"{before}{end}{missing[0]}", *missing[1:], ""]), mode)
    try:
        yield
    except BaseException:
        if missing:
            replace_file(path, before, mode)
        raise


def _refuse(directory: Path, names: set[str]) -> None:
    present = sorted(name for name in names if os.path.lexists(directory / name))
    if present:
        inventory = directory / INVENTORY
        look = f"look at it with: deploy check {inventory}; " if inventory.exists() else ""
        raise error(
            "site-exists",
            f"there is a site here already: {', '.join(present)}; nothing was changed",
            where=str(directory),
            hint=f"{look}make a new one elsewhere: deploy init {directory / 'NEW'}",
        )


@contextmanager
def _workshop(directory: Path) -> Iterator[Path]:
    """A directory on the file system of the new site that vanishes, whatever happens."""
    inside = directory.is_dir()
    workshop = (directory if inside else directory.parent) / f".{directory.resolve().name}.{os.getpid()}"
    workshop.mkdir()
    try:
        yield workshop
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _hand_over(workshop: Path, directory: Path) -> None:
    """Gives the files their place: one rename for a new directory, one for each name in an old one."""
    if workshop.parent != directory:
        workshop.rename(directory)  # fails where someone else has made it in the meantime
        return
    # The inventory last: with it the directory is a site.
    names = sorted((path.name for path in workshop.iterdir()), key=lambda name: name == INVENTORY)
    try:
        for name in names:
            (workshop / name).rename(directory / name)
    except BaseException:
        for name in names:
            if not (workshop / name).exists():
                (directory / name).rename(workshop / name)
        raise


@contextmanager
def _os_errors_explained(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        missing = not directory.parent.exists()
        raise error(
            "site-not-made",
            f"no site can be made here: {problem.strerror}; nothing was changed",
            where=str(directory),
            hint=f"mkdir -p {directory.parent}" if missing else "name a directory you may write to",
        ) from None

"""The bundle of a site: packages for each release, files, and the variables that point hosts to them."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from deploy.bundle.apt import need_tools
from deploy.bundle.archive import Fetched, Signer, clean, fetch_packages, forget, publish, sign
from deploy.bundle.contents import Contents
from deploy.bundle.files import fetch
from deploy.durable import replace_file
from deploy.errors import ExitCode, error
from deploy.lab.apt_settings import read_sources
from deploy.place import place_on_disk

_PUBLIC = 0o644
_COMPONENTS = "add contrib non-free non-free-firmware to this machine's sources, then apt-get update"
FILES, PACKAGES, VARIABLES = "files", "packages", "variables.json"
_PLACES = {"bookworm": "debian-12", "trixie": "debian-13"}
"""The directories where hosts of a release look."""


class Release(StrEnum):
    """Releases that a bundle can be made for."""

    BOOKWORM = "bookworm"
    TRIXIE = "trixie"


@dataclass(frozen=True)
class Bundle:
    """What came of it: how many packages and files, in bytes together, and what is not in it."""

    packages: int
    files: int
    size: int
    left_out: tuple[str, ...]


def make_bundle(
    directory: Path,
    contents: Contents,
    *,
    releases: Sequence[Release],
    architecture: str,
    url: str,
    say: Callable[[str], None],
) -> Bundle:
    """Fills the directory, which hosts will see at ``url``. Raises DeployError."""
    need_tools()
    with _os_errors_explained(directory), _alone(directory):
        for number, download in enumerate(contents.downloads, start=1):
            say(f"file {number} of {len(contents.downloads)}: {download.url}")
            fetch(download, directory / FILES)
        left_out = list(contents.left_out)
        fetched = {}
        for release in releases:
            say(f"packages of {release} ...")
            place = directory / PACKAGES / _PLACES[release]
            sources = _sources(release)
            fetched[release] = fetch_packages(place, sources, contents.packages, architecture)
            left_out += _lacking(release, fetched[release].lacking, sources)
        # An earlier bundle is as it was, with its key, until all of this one is there.
        places = {release: directory / PACKAGES / _PLACES[release] for release in fetched}
        key = _signed(fetched, places, architecture)
        for place in places.values():
            publish(place)
        replace_file(directory / VARIABLES, json.dumps(variables(url, key), indent=1) + "\n", _PUBLIC)
        for release, place in places.items():
            clean(place, fetched[release])
        everything = [path for path in directory.rglob("*") if path.is_file()]
        return Bundle(
            packages=sum(path.suffix == ".deb" and PACKAGES in path.parts for path in everything),
            files=len(contents.downloads),
            size=sum(path.stat().st_size for path in everything),
            left_out=tuple(left_out),
        )


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keeps another one out: hosts would get the lists of the one, and the key of the other."""
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise error(
                "bundle-busy",
                "another deploy bundle fills this directory",
                where=str(directory),
                hint="wait until it has ended, then type the same again",
                exit_code=ExitCode.FAILED,
            ) from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _os_errors_explained(directory: Path) -> Iterator[None]:
    """As of a directory that is another user's, or a disk that is full."""
    try:
        yield
    except OSError as problem:
        raise error(
            "bundle-not-written",
            f"the bundle cannot be written: {problem.filename or directory}: {problem.strerror or problem}",
            where=str(directory),
            hint=f"ls -ld {directory}; df {directory}; or name another directory",
            exit_code=ExitCode.FAILED,
        ) from None


def _lacking(release: Release, names: Sequence[str], sources: Sequence[str]) -> Iterator[str]:
    """What is said of packages that did not come."""
    if names:
        yield f"packages that {release} does not have, or that do not fit its others: {' '.join(names)}"
    is_main_alone = not any("non-free" in line.split() for line in sources)
    if is_main_alone and any("nvidia" in name for name in names):
        yield f"NVIDIA's packages: {_COMPONENTS}"


def _signed(fetched: Mapping[Release, Fetched], places: Mapping[Release, Path], architecture: str) -> str:
    """Signs the packages of each release; returns the key."""
    with place_on_disk("bundle") as home:
        signer = Signer(home / "gnupg")
        try:
            for release, packages in fetched.items():
                sign(places[release], packages, suite=release, architecture=architecture, signer=signer)
            key = signer.public_key
        except BaseException:
            for place in places.values():
                forget(place)
            raise
        else:
            return key
        finally:
            signer.end()


def variables(url: str, key: str) -> dict[str, str]:
    """What a site sets so that its hosts fetch everything from the bundle."""
    base = url.rstrip("/")
    return {
        "bootstrap_mirror": f"{base}/{FILES}",
        "bootstrap_archive": f"{base}/{PACKAGES}",
        "bootstrap_archive_key": key,
    }


def _sources(release: str) -> list[str]:
    sources = read_sources(release)
    if not sources:
        raise error(
            "bundle-no-sources",
            f"this machine's apt knows no mirror of Debian, from which to take {release}",
            hint="make the bundle on a Debian machine whose apt-get update works",
            exit_code=ExitCode.FAILED,
        )
    return sources

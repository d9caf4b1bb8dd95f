"""A directory of packages that apt takes for an archive: a list, and a signature over it.

The form of the files is described in https://wiki.debian.org/DebianRepository/Format (flat repositories).
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import unquote

from deploy.bundle.apt import Apt
from deploy.bundle.files import sha256
from deploy.durable import replace_file, take_place
from deploy.errors import DeployError, ExitCode, error
from deploy.place import place_on_disk

_PUBLIC = 0o644
_LISTS = ("Release", "InRelease", "Packages")
Stanza = str
"""What a package list says of one package: lines of ``Field: value``."""


def name_and_version(file: str) -> tuple[str, str]:
    """Of a package by the name of its file: ``a_1%3a2-3_amd64.deb`` -> ``a``, ``1:2-3``."""
    name, version, _ = file.split("_")
    return name, unquote(version)


def in_this_directory(stanza: Stanza, names: Mapping[str, str]) -> Stanza:
    """The paragraph with its file's place in this directory; ``names`` of files by their checksums."""
    digest = re.search(r"^SHA256: (\w{64})$", stanza, re.MULTILINE)
    name = names[digest[1] if digest else ""]
    return re.sub(r"^Filename: .*$", f"Filename: ./{name}", stanza.strip("\n"), flags=re.MULTILINE)


def release_file(suite: str, architecture: str, packages: bytes, now: datetime) -> str:
    """What is signed: the list's size and checksum."""
    return (
        "Origin: deploy\nLabel: deploy bundle\n"
        f"Suite: {suite}\nCodename: {suite}\nArchitectures: {architecture}\n"
        f"Date: {format_datetime(now, usegmt=True)}\n"
        f"SHA256:\n {hashlib.sha256(packages).hexdigest()} {len(packages)} Packages\n"
    )


class Signer:
    """A key made for one bundle; its secret part is gone when the bundle is made."""

    def __init__(self, home: Path) -> None:
        home.mkdir(mode=0o700)
        self._home = home
        user = "deploy bundle <root@localhost>"
        self._gpg("--passphrase", "", "--quick-generate-key", user, "ed25519", "sign", "never")

    @property
    def public_key(self) -> str:
        """The public key in ASCII armour."""
        return self._gpg("--armor", "--export")

    def sign(self, file: Path, signed: Path) -> None:
        """Writes the file with a signature around it."""
        self._gpg("--yes", "--digest-algo", "SHA512", "--output", str(signed), "--clearsign", str(file))

    def end(self) -> None:
        """Stops the agent that gpg started."""
        subprocess.run(["gpgconf", "--homedir", str(self._home), "--kill", "all"], check=False)

    def _gpg(self, *arguments: str) -> str:
        command = ["gpg", "--homedir", str(self._home), "--batch", "--quiet", *arguments]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise error(
                "bundle-signature-failed",
                f"gpg cannot sign the bundle: {ended.stderr.strip()[-500:]}",
                hint="gpg --version; apt-get install gpg gpg-agent",
                exit_code=ExitCode.FAILED,
            )
        return ended.stdout


@dataclass(frozen=True)
class Fetched:
    """Packages in a directory: their list, the names of their files, and wishes that came to nothing."""

    packages: str
    files: frozenset[str]
    lacking: tuple[str, ...]


def fetch_packages(
    directory: Path, sources: Iterable[str], wishes: Iterable[frozenset[str]], architecture: str
) -> Fetched:
    """Brings the wished packages and all they need into a directory, beside what is there.

    What is there of an earlier bundle is not fetched again, and that one stays whole. Raises DeployError.
    """
    directory.mkdir(parents=True, exist_ok=True)
    wanted = list(wishes)
    with place_on_disk("bundle") as place:
        apt = Apt(Path(place), sources, architecture)
        apt.refresh()
        known, needed = _resolved(apt, wanted)
        there = {name for name, digest in needed.items() if _is(directory / name, digest)}
        for name in there:
            _lend(directory / name, apt.archives / name)
        for names in known:
            apt.download(names)
        files = {digest: name for name, digest in needed.items() if _is(apt.archives / name, digest)}
        stanzas = apt.describe(name_and_version(name) for name in files.values())
        for name in {*files.values()} - there:
            beside = directory / f"{name}.part"
            shutil.move(apt.archives / name, beside)
            take_place(beside, directory / name)
    return Fetched(
        "\n\n".join(in_this_directory(stanza, files) for stanza in stanzas) + "\n",
        frozenset(files.values()),
        tuple(sorted({name for wish in wanted for name in wish}.difference(*known))),
    )


def _resolved(apt: Apt, wishes: Iterable[frozenset[str]]) -> tuple[list[list[str]], dict[str, str]]:
    """What can be installed together of each wish, and all that this needs.

    A release may have packages that fit nothing else it has, as kernel modules of an older driver. Raises
    DeployError where it has nothing for any wish.
    """
    known: list[list[str]] = []
    needed: dict[str, str] = {}
    refused: list[DeployError] = []
    for wish in wishes:
        names = apt.known(sorted(wish))
        try:
            needed |= apt.needed(names)
        except DeployError as problem:
            refused.append(problem)
        else:
            known.append(names)
    if refused and not known:
        raise refused[0]
    return known, needed


def sign(directory: Path, fetched: Fetched, *, suite: str, architecture: str, signer: Signer) -> None:
    """Writes what makes an archive of what was fetched, beside that of an earlier bundle."""
    release, signed, packages = (_beside(directory, name) for name in _LISTS)
    text = release_file(suite, architecture, fetched.packages.encode(), datetime.now(UTC))
    replace_file(packages, fetched.packages, _PUBLIC)
    replace_file(release, text, _PUBLIC)
    signer.sign(release, signed)


def forget(directory: Path) -> None:
    """Takes away what was signed and not published."""
    for name in _LISTS:
        _beside(directory, name).unlink(missing_ok=True)


def publish(directory: Path) -> None:
    """Puts what was signed in place of the earlier one."""
    for name in _LISTS:
        take_place(_beside(directory, name), directory / name)


def clean(directory: Path, fetched: Fetched) -> None:
    """Takes away what is needed no more."""
    for old in directory.iterdir():
        if old.name not in {*fetched.files, *_LISTS} and not old.is_dir():
            old.unlink()


def _beside(directory: Path, name: str) -> Path:
    return directory / f"{name}.part"


def _is(path: Path, digest: str) -> bool:
    return path.is_file() and sha256(path) == digest


def _lend(path: Path, place: Path) -> None:
    """The same file in another place; a copy where that is another file system."""
    try:
        place.hardlink_to(path)
    except OSError:
        shutil.copyfile(path, place)

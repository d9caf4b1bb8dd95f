"""Backups on this machine: encrypted archives, written and read by age.

What an archive is, and how its part on a controller is made, says the program of the role backup.
"""

import hashlib
import importlib.util
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from deploy.content import roles

SITE = "site"


def sources() -> dict[str, Path]:
    """The programs that hosts run, by the name by which one imports another."""
    place = roles() / "backup" / "files" / "usr" / "local" / "lib" / "backup"
    return {"backup": place / "backup.py", "restore": place / "restore.py"}


@cache
def made_by() -> Any:  # noqa: ANN401 - a module that hosts run, too
    """The program that makes backups."""
    spec = importlib.util.spec_from_file_location("deploy_backup", sources()["backup"])
    assert spec  # noqa: S101 - the file is deploy's own
    assert spec.loader  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class UnreadableError(Exception):
    """An archive that is no backup, or not a whole one; the text says why."""


@dataclass(frozen=True)
class Archive:
    """A backup that was read to its end and is as it was made."""

    path: Path
    identities: tuple[Path, ...]
    manifest: Mapping[str, Any]
    small: Mapping[str, bytes] = field(repr=False)
    """The files of the site and the records of the controller, by name."""

    def pieces(self, name: str) -> Iterator[bytes]:
        """The pieces of a large member, in order; read and compared once more."""
        for member, content in members(self.path, self.identities):
            if member.startswith(f"{name}/"):
                if hashlib.sha256(content).hexdigest() != self.manifest["members"].get(member):
                    message = f"{self.path} changed while it was read"
                    raise UnreadableError(message)
                yield content

    def files(self, kind: str) -> dict[str, bytes]:
        """Small members of a kind, by what they are called there."""
        return {
            name.removeprefix(f"{kind}/"): content
            for name, content in self.small.items()
            if name.startswith(f"{kind}/")
        }


def read_archive(path: Path, identities: tuple[Path, ...]) -> Archive:
    """Reads a whole archive and compares every member with its checksum. Raises UnreadableError."""
    program = made_by()
    small, sums, manifest = {}, {}, None
    for name, content in members(path, identities):
        if name == program.MANIFEST:
            manifest = _parsed(content)
            continue
        sums[name] = hashlib.sha256(content).hexdigest()
        if name.split("/")[0] in {SITE, program.RECORDS}:
            small[name] = content
    if manifest is None:
        message = "it ends without a manifest: its end is missing"
        raise UnreadableError(message)
    if manifest.get("format") != program.FORMAT:
        message = f"it is of the format {manifest.get('format')!r}, and this deploy reads {program.FORMAT}"
        raise UnreadableError(message)
    differing = sorted(name for name, _ in {*sums.items()} ^ {*manifest["members"].items()})
    if differing:
        message = f"{', '.join(differing[:3])} is not as the manifest says"
        raise UnreadableError(message)
    return Archive(path, identities, manifest, small)


def members(path: Path, identities: tuple[Path, ...]) -> Iterator[tuple[str, bytes]]:
    """Decrypts an archive: names and contents. Raises UnreadableError, at its end too."""
    words = [word for identity in identities for word in ("--identity", str(identity))]
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            ("age", "--decrypt", *words, str(path)), stdout=subprocess.PIPE, stderr=said
        ) as age:
            problem: Exception | None = None
            try:
                yield from unpacked(cast("BinaryIO", age.stdout))
            except tarfile.TarError as error:
                problem = error
            except BaseException:
                age.kill()
                raise
        said.seek(0)
        lines = [line for line in said.read().decode(errors="replace").splitlines() if "report" not in line]
    if age.returncode:
        raise UnreadableError(lines[0].removeprefix("age: error: ") if lines else "age cannot read it")
    if problem:
        message = f"what is encrypted in it is no archive: {problem}"
        raise UnreadableError(message)


def unpacked(stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the members of a tar file that comes. Raises tarfile.TarError."""
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for entry in tar:
            file = tar.extractfile(entry)
            if file is not None:
                yield entry.name, file.read()
    while stream.read(1 << 16):
        pass


def _parsed(content: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(content))
    except (ValueError, TypeError):
        message = "its manifest cannot be read"
        raise UnreadableError(message) from None

"""`make release`: wheel and source distribution of a version in dist/, built from a commit and tried.

Uploads nothing and tags nothing; CONTRIBUTING.md says what a release is besides.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from deploy import __version__
from tests.tracked import ROOT

_DIST = ROOT / "dist"
_BINARIES = Path(sys.executable).parent
# No host of the site that is checked is ever asked for: ssh ends at once.
_NO_CONNECTION = '{"ansible_ssh_common_args": "-o ProxyCommand=false"}'
_UNREACHABLE = 4


class ReleaseError(Exception):
    """Why this is no release."""


def main() -> int:
    """Builds and tries; returns the exit code."""
    try:
        _refuse(changed_files())
        _refuse(complaints((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__))
        wheel, source = _build()
        with tempfile.TemporaryDirectory() as place:
            _refuse(
                f"the source distribution builds another {name}"
                for name in _rebuilt(source, wheel, Path(place))
            )
            _try(wheel, Path(place))
    except ReleaseError as error:
        sys.stderr.write(f"no release: {error}\n")
        return 1
    for path in (wheel, source):
        sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB\n")
    return 0


def changed_files() -> Iterator[str]:
    """What is not as the last commit has it."""
    answer = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    yield from (f"not committed: {line[3:]}" for line in answer.stdout.splitlines())


def complaints(changelog: str, version: str) -> Iterator[str]:
    """What a changelog lacks for a release of this version."""
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL))
    headings = list(sections)
    if headings[:1] != ["Unreleased"]:
        yield "CHANGELOG.md does not begin with '## Unreleased'"
    elif sections["Unreleased"].strip():
        yield f"CHANGELOG.md has changes below '## Unreleased'; they belong below '## {version}'"
    if not sections.get(version, "").strip():
        yield f"CHANGELOG.md says nothing below '## {version}'"
    elif (newest := next(heading for heading in headings if heading != "Unreleased")) != version:
        yield f"the newest version of CHANGELOG.md is {newest}, that of deploy/__init__.py {version}"


def differences(one: Path, other: Path) -> Iterator[str]:
    """The files of two wheels that are not the same in both."""
    with zipfile.ZipFile(one) as first, zipfile.ZipFile(other) as second:
        names = (set(first.namelist()), set(second.namelist()))
        yield from sorted(names[0] ^ names[1])
        yield from sorted(name for name in names[0] & names[1] if first.read(name) != second.read(name))


def _fail(reason: str) -> NoReturn:
    raise ReleaseError(reason)


def _refuse(reasons: Iterator[str]) -> None:
    if found := list(reasons):
        _fail("\n  ".join(found))


def _build() -> tuple[Path, Path]:
    """Wheel and source distribution, both from this tree."""
    shutil.rmtree(_DIST, ignore_errors=True)
    _run(_BINARIES / "python", "-m", "build", "--no-isolation", "--sdist", "--wheel", "--outdir", _DIST, ROOT)
    (wheel,), (source,) = _DIST.glob("*.whl"), _DIST.glob("*.tar.gz")
    _run(_BINARIES / "twine", "check", "--strict", wheel, source)
    return wheel, source


def _rebuilt(source: Path, wheel: Path, place: Path) -> Iterator[str]:
    """What the wheel that a source distribution builds has otherwise."""
    shutil.unpack_archive(source, place / "source", filter="data")
    (tree,) = (place / "source").iterdir()
    _run(_BINARIES / "python", "-m", "build", "--no-isolation", "--wheel", "--outdir", place / "again", tree)
    yield from differences(wheel, place / "again" / wheel.name)


def _try(wheel: Path, place: Path) -> None:
    """Installs the wheel where nothing else is, and has it check a site."""
    venv.create(place / "venv", with_pip=True)
    _run(place / "venv/bin/pip", "install", "--quiet", wheel)
    deploy = place / "venv/bin/deploy"
    said = _run(deploy, "--version", at=place)
    if said.split() != ["deploy", __version__]:
        _fail(f"the installed wheel says that it is {said!r}")
    _run(deploy, "init", "site", "--controller", "ctl1", "--nodes", "node[1-2]", at=place)
    # Its playbooks run, and nobody answers.
    check = (deploy, "check", "site/inventory.ini", "-e", _NO_CONNECTION)
    found = _run(*check, at=place, expected=_UNREACHABLE)
    if "3 hosts: 3 unreachable" not in found:
        _fail(f"the installed wheel checks a site otherwise:\n{found}")


def _run(*command: str | Path, at: Path = ROOT, expected: int = 0) -> str:
    """What a command prints. Raises ReleaseError when its exit code is not the expected one."""
    answer = subprocess.run(command, cwd=at, capture_output=True, text=True, check=False)
    if answer.returncode != expected:
        said = f"{answer.stdout}{answer.stderr}"
        _fail(f"{' '.join(map(str, command))}: exit code {answer.returncode}\n{said}")
    return answer.stdout


if __name__ == "__main__":
    sys.exit(main())

"""A bundle that is made again: the earlier one is there until the new one is whole."""

import hashlib
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from deploy.bundle import archive, make
from deploy.bundle.apt import Apt
from deploy.bundle.contents import Contents
from deploy.bundle.make import Release, make_bundle
from deploy.errors import DeployError, ExitCode, error

CONTENTS = Contents(frozenset({frozenset({"slurm"})}), (), ())
needs_gpg = pytest.mark.skipif(
    not all(map(shutil.which, ("gpg", "gpg-agent", "gpgv", "apt-get"))),
    reason="`make system` installs gpg for it",
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Mirror(Apt):
    """Apt before a mirror with these packages (names of files -> content), which may be away."""

    def __init__(self, packages: dict[str, str], *, is_away: bool = False) -> None:
        self.packages, self.is_away = packages, is_away
        self.sent: list[str] = []

    def at(self, root: Path, sources: Iterable[str], architecture: str) -> "Mirror":
        super().__init__(root, sources, architecture)
        return self

    def refresh(self) -> None: ...

    def known(self, names: Iterable[str]) -> list[str]:
        return list(names)

    def needed(self, names: Iterable[str]) -> dict[str, str]:
        assert list(names) == ["slurm"]
        return {name: digest(text) for name, text in self.packages.items()}

    def download(self, names: Iterable[str]) -> None:
        assert list(names) == ["slurm"]
        for name, text in self.packages.items():
            place = self.archives / name
            if place.exists() and place.read_text() == text:
                continue
            if self.is_away:
                raise error("bundle-packages-failed", "E: no answer", hint="-", exit_code=ExitCode.FAILED)
            place.write_text(text)
            self.sent.append(name)

    def describe(self, packages: Iterable[tuple[str, str]]) -> list[str]:
        texts = {name.split("_")[0]: text for name, text in self.packages.items()}
        return [
            f"Package: {name}\nVersion: {version}\nFilename: pool/x.deb\nSHA256: {digest(texts[name])}\n"
            for name, version in packages
        ]


Made = Callable[[Mirror], dict[str, str]]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Makes the bundle of a mirror; returns what lies in it."""
    monkeypatch.setattr(make, "_sources", lambda _: [])

    def again(mirror: Mirror) -> dict[str, str]:
        monkeypatch.setattr(archive, "Apt", mirror.at)
        try:
            make_bundle(
                tmp_path,
                CONTENTS,
                releases=[Release.BOOKWORM, Release.TRIXIE],
                architecture="amd64",
                url="http://x",
                say=lambda _: None,
            )
        except DeployError:
            if not mirror.is_away:
                raise
        return {
            str(path.relative_to(tmp_path)): path.read_text()
            for path in tmp_path.rglob("*")
            if path.is_file()
        }

    return again


@needs_gpg
def test_what_changed_alone_is_fetched_and_what_nobody_needs_goes(made: Made) -> None:
    made(Mirror({"slurm_1_amd64.deb": "one", "munge_1_amd64.deb": "key"}))
    later = Mirror({"slurm_2_amd64.deb": "two", "munge_1_amd64.deb": "key"})
    found = made(later)
    assert later.sent == ["slurm_2_amd64.deb"] * 2, "once for each release"
    assert sorted(path for path in found if path.startswith("packages/debian-13/")) == [
        f"packages/debian-13/{name}"
        for name in ("InRelease", "Packages", "Release", "munge_1_amd64.deb", "slurm_2_amd64.deb")
    ]
    packages = found["packages/debian-13/Packages"]
    assert "Filename: ./slurm_2_amd64.deb" in packages
    assert digest(packages) in found["packages/debian-13/InRelease"]


@needs_gpg
def test_one_that_fails_leaves_the_earlier_one(made: Made) -> None:
    packages = {"slurm_1_amd64.deb": "one", "munge_1_amd64.deb": "key"}
    before = made(Mirror(packages))
    assert made(Mirror({**packages, "slurm_1_amd64.deb": "other"}, is_away=True)) == before
    assert made(Mirror({"slurm_2_amd64.deb": "two"}, is_away=True)) == before


@needs_gpg
def test_one_that_cannot_sign_all_of_it_leaves_the_earlier_one(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key would be in no file any more."""
    before = made(Mirror({"slurm_1_amd64.deb": "one"}))
    sign, signed = archive.Signer.sign, list[Path]()

    def fails_at_the_second(signer: archive.Signer, file: Path, into: Path) -> None:
        signed.append(file)
        if signed[1:]:
            raise OSError(28, "No space left on device")
        sign(signer, file, into)

    monkeypatch.setattr(archive.Signer, "sign", fails_at_the_second)
    with pytest.raises(DeployError, match="the bundle cannot be written"):
        made(Mirror({"slurm_2_amd64.deb": "two"}))
    monkeypatch.undo()
    assert len(signed) == 2
    (root,) = {path.parents[2] for path in signed}
    found = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*") if path.is_file()}
    assert {name: found.get(name) for name in before} == before
    assert {name.rpartition("/")[2] for name in found.keys() - before.keys()} == {"slurm_2_amd64.deb"}


@needs_gpg
def test_a_second_one_is_kept_out(tmp_path: Path) -> None:
    def begins_another(_: str) -> None:
        with pytest.raises(DeployError, match="another deploy bundle fills this directory"):
            make_bundle(tmp_path, CONTENTS, releases=[], architecture="amd64", url="http://x", say=print)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_bundle(
            tmp_path,
            CONTENTS,
            releases=[Release.TRIXIE],
            architecture="amd64",
            url="http://x",
            say=begins_another,
        )


def test_apt_is_understood_in_every_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    cache = programs / "apt-cache"
    cache.write_text(
        '#!/bin/sh\n[ "$LC_ALL" = C.UTF-8 ] && [ -z "$LANGUAGE" ] && '
        'printf "gpg:\\n  Installed: (none)\\n  Candidate: 1\\n" && exit\n'
        'printf "gpg:\\n  Installiert: (keine)\\n  Installationskandidat: 1\\n"\n'
    )
    cache.chmod(0o755)
    # The C library would go on with what it once said in a language that it has.
    for name, value in {"LANG": "xx_XX.UTF-8", "LC_ALL": "xx_XX.UTF-8", "LANGUAGE": "xx"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    assert Apt(tmp_path / "root", [], "amd64").known(["gpg"]) == ["gpg"]


class OldModules(Mirror):
    """A release whose open modules fit an older driver than its own."""

    def needed(self, names: Iterable[str]) -> dict[str, str]:
        if "open" in names:
            raise error("bundle-packages-failed", "E: held broken", hint="-", exit_code=ExitCode.FAILED)
        return {name: digest(text) for name, text in self.packages.items()}

    def download(self, names: Iterable[str]) -> None:
        super().download(name for name in names if name != "driver")


@needs_gpg
@pytest.mark.parametrize("components", ["main", "main non-free"])
def test_what_does_not_fit_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, components: str
) -> None:
    monkeypatch.setattr(make, "_sources", lambda _: [f"deb http://x bookworm {components}"])
    monkeypatch.setattr(archive, "Apt", OldModules({"slurm_1_amd64.deb": "one"}).at)
    wishes = frozenset({frozenset({"slurm", "driver"}), frozenset({"slurm", "driver", "open", "nvidia-x"})})
    contents = Contents(wishes, (), ())
    given = {"architecture": "amd64", "url": "http://x", "say": lambda _: None}
    found = make_bundle(tmp_path, contents, releases=[Release.BOOKWORM], **given)  # type: ignore[arg-type]
    assert found.packages == 1
    assert found.left_out[0].endswith(": nvidia-x open")
    assert ("add contrib non-free" in str(found.left_out)) is (components == "main")
    only = Contents(frozenset({frozenset({"open"})}), (), ())
    with pytest.raises(DeployError, match="held broken"):
        make_bundle(tmp_path, only, releases=[Release.BOOKWORM], **given)  # type: ignore[arg-type]
    assert not (tmp_path / ".lock").exists()


def test_a_place_where_nothing_can_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DeployError, match="the bundle cannot be written"):
        make_bundle(
            tmp_path / "file/x", CONTENTS, releases=[], architecture="amd64", url="http://x", say=print
        )

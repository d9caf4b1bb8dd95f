"""A release is unpacked once from its archives, and what runs from it keeps it."""

import subprocess
import tarfile
from pathlib import Path
from typing import NoReturn

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/unpacked_release.py")


class Refused(Exception):  # noqa: N818 - the module's end
    pass


class Machine:
    """An AnsibleModule that runs commands."""

    def __init__(self, path: Path, *archives: tuple[Path, str]) -> None:
        named = [{"file": str(file), "directory": directory} for file, directory in archives]
        self.params = {"path": str(path), "archives": named}

    def run_command(self, command: list[str], **_: object) -> tuple[int, str, str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def fail_json(self, *, msg: str) -> NoReturn:
        raise Refused(msg)


def archive(place: Path, name: str, text: str) -> Path:
    inside = place / f"{name}-1.0"
    inside.mkdir(parents=True)
    (inside / "file").write_text(text)
    path = place / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        made.add(inside, arcname=inside.name)
    return path


def unpack(path: Path, *archives: tuple[Path, str]) -> Path:
    release = module.Release(Machine(path, *archives))
    place: Path = release.place()
    if not release.is_current(place):
        release.unpack(place)
    assert release.is_current(place)
    return place


def test_each_archive_has_its_directory_without_the_one_that_it_begins_with(tmp_path: Path) -> None:
    first, second = archive(tmp_path / "a", "one", "1"), archive(tmp_path / "b", "two", "2")
    unpack(tmp_path / "release", (first, "one"), (second, "two"))
    assert (tmp_path / "release/one/file").read_text() == "1"
    assert (tmp_path / "release/two/file").read_text() == "2"


def test_other_archives_are_another_release_and_the_one_before_stays(tmp_path: Path) -> None:
    places = [
        unpack(tmp_path / "release", (archive(tmp_path / name, "x", name), "x")) for name in ("a", "b", "c")
    ]
    assert [place.exists() for place in places] == [False, True, True]
    assert (places[1] / "x/file").read_text() == "b"
    assert (tmp_path / "release/x/file").read_text() == "c"


def test_what_was_cut_off_is_unpacked_anew(tmp_path: Path) -> None:
    file = archive(tmp_path / "a", "x", "1")
    place = unpack(tmp_path / "release", (file, "x"))
    (place / "complete").unlink()
    (place / "x/file").write_text("half")
    unpack(tmp_path / "release", (file, "x"))
    assert (place / "x/file").read_text() == "1"


def test_what_is_no_archive_is_said_and_nothing_points_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("404 Not Found")
    with pytest.raises(Refused, match="tar ends with exit code 2"):
        unpack(tmp_path / "release", (tmp_path / "file", "x"))
    assert not (tmp_path / "release").exists()

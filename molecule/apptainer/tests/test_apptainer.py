"""Users get the version that was named, and no file but the one with its checksum."""

import re
from collections.abc import Iterator

import pytest

from molecule.conftest import MACHINES, Converge, On


def version(on: On, machine: str) -> str:
    return on(machine, "apptainer").stdout.split()[-1]


def test_the_named_version_is_installed_though_there_are_later_ones(on: On, machine: str) -> None:
    assert version(on, machine) == "1.0"


def test_what_it_works_with_is_there(on: On, machine: str) -> None:
    assert on(machine, "sh", "-c", "command -v newuidmap fakeroot").stdout.count("/") >= 2


def test_a_file_with_another_checksum_is_refused(on: On, converge: Converge) -> None:
    answer = converge(version="1.1", checksum="0" * 64)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    said = "did not match 0{64}; it was [0-9a-f]{64}"
    assert sorted(re.findall(rf"failed: \[molecule-apptainer-(\w+)\].*{said}", answer.stderr)) == MACHINES
    assert [version(on, name) for name in MACHINES] == ["1.0"] * len(MACHINES)


def test_a_version_without_a_checksum_is_refused(on: On, converge: Converge) -> None:
    answer = converge(version="1.2")
    assert answer.returncode == 2, answer.stdout + answer.stderr
    said = r"has no file of Apptainer 1\.2 for Debian-1[23] on amd64"
    assert sorted(re.findall(rf"fatal: \[molecule-apptainer-(\w+)\].*{said}", answer.stderr)) == MACHINES
    assert [version(on, name) for name in MACHINES] == ["1.0"] * len(MACHINES)


@pytest.fixture
def again(on: On, converge: Converge) -> Iterator[None]:
    yield
    answer = converge()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert [version(on, name) for name in MACHINES] == ["1.0"] * len(MACHINES)


@pytest.mark.usefixtures("again")
@pytest.mark.parametrize(("source", "wanted"), [("release", "1.1"), ("distribution", "1.2")])
def test_another_version_takes_its_place(on: On, converge: Converge, source: str, wanted: str) -> None:
    answer = converge(version=wanted, source=source)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert [version(on, name) for name in MACHINES] == [wanted] * len(MACHINES)

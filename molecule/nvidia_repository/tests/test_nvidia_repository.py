"""Packages come from the vendor's repository, and from nothing that only looks like it."""

import re
from subprocess import CompletedProcess

import pytest

from molecule.conftest import MACHINES, Converge, On


def refusals(answer: CompletedProcess[str], reason: str) -> list[str]:
    """The machines that refused for this reason."""
    found = re.findall(
        rf"^fatal: \[molecule-nvidia-repository-(\w+)\].*{re.escape(reason)}", answer.stderr, re.MULTILINE
    )
    return sorted(found)


def state(on: On, machine: str) -> str:
    """What apt is told about sources and keys."""
    return on(machine, "sh", "-c", "sha256sum /etc/apt/sources.list.d/* /usr/share/keyrings/*").stdout


def test_a_package_of_the_vendor_can_be_installed(on: On, machine: str) -> None:
    on(machine, "apt-get", "install", "--yes", "cuda-nvcc-12-4")
    shown = on(machine, "dpkg-query", "--show", "cuda-nvcc-12-4").stdout
    assert shown.split() == ["cuda-nvcc-12-4", "12.4.131-1"]


def test_everything_else_can_still_be_updated(on: On, machine: str) -> None:
    answer = on(machine, "apt-get", "update")
    assert "W:" not in answer.stderr
    assert "E:" not in answer.stderr


def test_another_key_is_refused(on: On, converge: Converge) -> None:
    before = [state(on, machine) for machine in MACHINES]
    other = "EB693B3035CD5710E231E123A4B469963BF863CC"
    answer = converge(expected_fingerprint=other)
    assert refusals(answer, f"not {other}: it is another key") == MACHINES, answer.stderr
    assert [state(on, machine) for machine in MACHINES] == before


@pytest.fixture(scope="module")
def forged(on: On) -> str:
    """Copies of the repository: changed after signing, signed by another key, with a damaged list."""
    for machine in MACHINES:
        on(machine, "cp", "-a", "/srv/vendor", "/srv/changed")
        on(machine, "sed", "-i", "s/^Origin: .*/Origin: Somebody/", "/srv/changed/InRelease")
        on(machine, "cp", "-a", "/srv/vendor", "/srv/foreign")
        on(machine, "rm", "-rf", "/srv/foreign/.gnupg")
        on(machine, "python3", "/srv/vendor_repository.py", "/srv/foreign", "[]")
        on(machine, "cp", "-a", "/srv/vendor", "/srv/damaged")
        on(machine, "sh", "-c", "cd /srv/damaged && rm Packages.gz && sed -i s/12.4.131/12.4.999/ Packages")
    return "/srv"


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("changed", "its signature is wrong"),
        ("foreign", "it is not signed with this key"),
        ("damaged", "a file has not the checksum that its signed list says"),
    ],
)
def test_a_forged_repository_is_refused(
    on: On, converge: Converge, forged: str, place: str, reason: str
) -> None:
    before = [state(on, machine) for machine in MACHINES]
    answer = converge(place=f"{forged}/{place}")
    assert refusals(answer, reason) == MACHINES, answer.stderr
    assert [state(on, machine) for machine in MACHINES] == before


def test_a_processor_for_which_there_is_none_is_refused_before_anything_is_fetched(
    on: On, converge: Converge
) -> None:
    before = [state(on, machine) for machine in MACHINES]
    answer = converge(uri="", processor="aarch64")
    assert refusals(answer, "on aarch64 that is known here") == MACHINES, answer.stderr
    assert [state(on, machine) for machine in MACHINES] == before

"""DCGM is of the wanted version, and its daemon runs."""

import pytest

from molecule.conftest import On


@pytest.mark.parametrize("part", ["core", "cuda12"])
def test_it_is_of_the_version_though_there_is_a_later_one(on: On, machine: str, part: str) -> None:
    package = f"datacenter-gpu-manager-4-{part}"
    assert on(machine, "dpkg-query", "--show", "--showformat=${Version}", package).stdout == "1:4.4.2-1"


def test_the_daemon_runs_and_starts_with_the_machine(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-active", "nvidia-dcgm").stdout == "active\n"
    assert on(machine, "systemctl", "is-enabled", "nvidia-dcgm").stdout == "enabled\n"

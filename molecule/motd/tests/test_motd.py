"""Who logs in reads what the cluster has."""

import pytest

from molecule.conftest import On


@pytest.fixture
def shown(on: On, machine: str) -> list[str]:
    """What alice sees between ssh and her first command."""
    options = ["-tt", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR"]
    command = ["timeout", "30", "ssh", *options, "alice@localhost"]
    return on(machine, *command, data="exit\n").stdout.replace("\r", "").splitlines()


def test_partitions_with_their_nodes_and_limits(shown: list[str]) -> None:
    rows = [line.split(maxsplit=2) for line in shown if line.startswith(("batch*", "long"))]
    assert rows == [
        ["batch*", "node[1-4]", "64 CPUs, 251 GiB, 4 a100             1-00:00:00"],
        ["long", "node[3-4]", "64 CPUs, 251 GiB                     no limit"],
    ]


def test_limits_and_help(shown: list[str]) -> None:
    assert "Here one user gets 25% of the memory at most." in shown
    assert "Maintenance: every first Monday, 8:00" in shown
    assert "Help: help@wolke.example" in shown


def test_the_message_is_shown_once(shown: list[str]) -> None:
    assert sum("login node of the cluster wolke" in line for line in shown) == 1

"""The client follows the server, and the server answers nobody else."""

import time

import pytest

from molecule.conftest import On


@pytest.fixture(scope="module")
def server_address(on: On) -> str:
    return on("server", "hostname", "--all-ip-addresses").stdout.split()[0]


@pytest.fixture(scope="module")
def client_address(on: On) -> str:
    return on("client", "hostname", "--all-ip-addresses").stdout.split()[0]


def test_client_selects_the_server(on: On, server_address: str) -> None:
    deadline = time.monotonic() + 60
    while f"^* {server_address} " not in (sources := on("client", "chronyc", "-n", "sources").stdout):
        assert time.monotonic() < deadline, sources
        time.sleep(1)


def test_client_is_synchronized(on: On, server_address: str) -> None:
    deadline = time.monotonic() + 30
    while "Leap status     : Normal" not in (tracking := on("client", "chronyc", "-n", "tracking").stdout):
        assert time.monotonic() < deadline, tracking
        time.sleep(1)
    assert f"({server_address})" in tracking


def test_server_answers_only_whom_it_allows(on: On, client_address: str) -> None:
    assert "Access allowed" in on("server", "chronyc", "accheck", client_address).stdout
    assert "Access denied" in on("server", "chronyc", "accheck", "198.51.100.1").stdout


@pytest.mark.parametrize("machine", ["server", "client"])
def test_daemon_runs_with_its_options_and_at_boot(on: On, machine: str) -> None:
    assert "-x" in on(machine, "ps", "-C", "chronyd", "-o", "args=").stdout.split()
    assert on(machine, "systemctl", "is-enabled", "chrony.service").stdout == "enabled\n"

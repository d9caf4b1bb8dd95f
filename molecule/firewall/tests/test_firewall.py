"""What each host accepts: all of the cluster, ssh of admins, what was opened; and nothing else."""

import time
from collections.abc import Iterator

import pytest

from molecule.conftest import On

NUMBERS = {"bookworm": 1, "trixie": 2}
OTHER = {"bookworm": "trixie", "trixie": "bookworm"}
NETWORKS = {"cluster": 0, "admins": 1, "outside": 2}
SSH, OPENED, EXPORTER, GUARDED = 22, 8080, 9100, 9200
CONNECT = """
import socket, sys
source, target, port = sys.argv[1:]
try:
    socket.create_connection((target, int(port)), timeout=5, source_address=(source, 0))
    print("accepted")
except OSError as problem:
    print("refused" if problem.errno else "silence")
"""


def answer(on: On, machine: str, network: str, port: int) -> str:
    """What the other machine hears when it comes from one of its networks."""
    other = OTHER[machine]
    source, target = (f"10.77.{NETWORKS[network]}.{NUMBERS[name]}" for name in (other, machine))
    return on(other, "python3", "-c", CONNECT, source, target, str(port)).stdout.strip()


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ("cluster", {SSH: "accepted", OPENED: "accepted", EXPORTER: "accepted", GUARDED: "refused"}),
        ("admins", {SSH: "accepted", OPENED: "refused", EXPORTER: "refused", GUARDED: "accepted"}),
        ("outside", {SSH: "refused", OPENED: "accepted", EXPORTER: "refused", GUARDED: "accepted"}),
    ],
)
def test_who_reaches_what(on: On, machine: str, network: str, expected: dict[int, str]) -> None:
    assert {port: answer(on, machine, network, port) for port in expected} == expected


def test_the_host_itself_reaches_out(on: On, machine: str) -> None:
    """An answer to what the host asked for comes in, from wherever."""
    on(OTHER[machine], "nft", "add", "rule", "inet", "deploy", "input", "tcp", "dport", "9100", "accept")
    on(OTHER[machine], "nft", "insert", "rule", "inet", "deploy", "input", "tcp", "dport", "9100", "accept")
    heard = answer(on, OTHER[machine], "outside", EXPORTER)
    on(OTHER[machine], "systemctl", "reload", "deploy-firewall")
    assert heard == "accepted"


@pytest.fixture
def with_the_distributions_service(on: On, machine: str) -> Iterator[str]:
    on(machine, "systemctl", "start", "nftables")
    yield machine
    on(machine, "systemctl", "stop", "nftables")
    on(machine, "systemctl", "start", "deploy-firewall")


def test_the_table_survives_the_distributions_own_service(
    on: On, with_the_distributions_service: str
) -> None:
    for way in ("restart", "reload"):
        on(with_the_distributions_service, "systemctl", way, "nftables")
        # systemctl waits for the service that it was told about, not for the one that follows it.
        deadline = time.monotonic() + 10
        while answer(on, with_the_distributions_service, "outside", EXPORTER) != "refused":
            assert time.monotonic() < deadline, way


def test_it_is_loaded_at_boot(on: On, machine: str) -> None:
    on(machine, "nft", "delete", "table", "inet", "deploy")
    assert answer(on, machine, "outside", EXPORTER) == "accepted"
    on(machine, "systemctl", "restart", "deploy-firewall", check=False)
    on(machine, "systemctl", "start", "deploy-firewall")
    assert answer(on, machine, "outside", EXPORTER) == "refused"
    assert on(machine, "systemctl", "is-enabled", "deploy-firewall").stdout == "enabled\n"


def test_other_tables_stay(on: On, machine: str) -> None:
    on(machine, "nft", "add", "table", "inet", "own")
    on(machine, "systemctl", "reload", "deploy-firewall")
    assert "table inet own" in on(machine, "nft", "list", "tables").stdout

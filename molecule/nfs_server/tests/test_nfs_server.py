"""Clients mount what is exported to them, with the rights they were given; nobody else does."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

On = Callable[..., CompletedProcess[str]]

PLACE = "/mnt/exported"


@pytest.fixture(params=["bookworm", "trixie"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def converge_with(**variables: object) -> CompletedProcess[str]:
    command = [
        str(Path(sys.executable).with_name("ansible-playbook")),
        f"--inventory={os.environ['MOLECULE_INVENTORY_FILE']}",
        f"--extra-vars={json.dumps(variables)}",
        str(Path(__file__).parents[1] / "converge.yml"),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def mount(inside: On, machine: str) -> Iterator[Callable[[str], CompletedProcess[str]]]:
    def mounting(source: str) -> CompletedProcess[str]:
        inside(machine, "mkdir", "-p", PLACE)
        return inside(machine, "mount", "-t", "nfs", "-o", "soft,timeo=50", source, PLACE, check=False)

    yield mounting
    inside(machine, "umount", PLACE, check=False)


def address(inside: On, machine: str) -> str:
    """The machine's own address, from which it was allowed nothing."""
    return inside(machine, "ip", "-4", "-o", "addr", "show", "dev", "vec0").stdout.split()[3].split("/")[0]


def test_client_writes_and_its_root_is_nobody(
    inside: On, machine: str, mount: Callable[[str], CompletedProcess[str]]
) -> None:
    inside(machine, "chmod", "777", "/srv/home")
    assert mount("127.0.0.1:/srv/home").returncode == 0
    inside(machine, "touch", f"{PLACE}/of-root")
    assert inside(machine, "stat", "--format=%u", "/srv/home/of-root").stdout == "65534\n"
    inside(machine, "rm", "/srv/home/of-root")


def test_root_is_trusted_only_where_it_is_declared(
    inside: On, machine: str, mount: Callable[[str], CompletedProcess[str]]
) -> None:
    assert mount("127.0.0.1:/srv/trusted").returncode == 0
    inside(machine, "touch", f"{PLACE}/of-root")
    assert inside(machine, "stat", "--format=%u", "/srv/trusted/of-root").stdout == "0\n"


def test_what_is_for_reading_cannot_be_written(
    inside: On, machine: str, mount: Callable[[str], CompletedProcess[str]]
) -> None:
    inside(machine, "chmod", "777", "/srv/software")
    assert mount("127.0.0.1:/srv/software").returncode == 0
    assert "Read-only file system" in inside(machine, "touch", f"{PLACE}/x", check=False).stderr


def test_a_stranger_is_refused_until_it_is_a_client(
    inside: On, machine: str, mount: Callable[[str], CompletedProcess[str]]
) -> None:
    own = address(inside, machine)
    refused = mount(f"{own}:/srv/home")
    assert refused.returncode != 0
    assert "access denied" in refused.stderr or "not permitted" in refused.stderr, refused.stderr
    started = inside(
        machine, "systemctl", "show", "nfs-server", "--property=ActiveEnterTimestampMonotonic"
    ).stdout
    answer = converge_with(more_clients=[own])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert mount(f"{own}:/srv/home").returncode == 0
    after = inside(
        machine, "systemctl", "show", "nfs-server", "--property=ActiveEnterTimestampMonotonic"
    ).stdout
    assert after == started


def test_it_has_its_threads_and_starts_at_boot(inside: On, machine: str) -> None:
    assert inside(machine, "cat", "/proc/fs/nfsd/threads").stdout == "5\n"
    assert inside(machine, "systemctl", "is-enabled", "nfs-server").stdout == "enabled\n"


def test_everybody_is_no_client(inside: On) -> None:
    answer = converge_with(more_clients=["*"])
    assert answer.returncode == 2
    assert "'*' is neither an address, a network nor a host name" in answer.stdout + answer.stderr
    assert "*" not in inside("trixie", "cat", "/etc/exports.d/deploy.exports").stdout

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.host_checks.checks import part, said

ports = part("ports")

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"


def line(port: int, state: str, inode: int, address: str = "00000000") -> str:
    return f"   0: {address}:{port:04X} 00000000:0000 {state} 0:0 00:0 0     0        0 {inode} 1 x 100\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    for name in ("tcp", "udp", "udp6"):
        (tmp_path / "net" / name).write_text(HEAD)
    return tmp_path


def listen(proc: Path, table: str, text: str) -> None:
    with (proc / "net" / table).open("a") as file:
        file.write(text)


def process(proc: Path, pid: int, name: str, *inodes: int) -> None:
    descriptors = proc / str(pid) / "fd"
    descriptors.mkdir(parents=True)
    (proc / str(pid) / "comm").write_text(f"{name}\n")
    (descriptors / "0").symlink_to("/dev/null")
    for number, inode in enumerate(inodes, start=3):
        (descriptors / str(number)).symlink_to(f"socket:[{inode}]")


def want(port: int, protocol: str = "tcp", setting: str = "") -> dict[str, Any]:
    programs = ["slurmctld", "other"]
    return {
        "port": port,
        "protocol": protocol,
        "daemon": "slurmctld",
        "programs": programs,
        "setting": setting,
    }


def test_free_ports(proc: Path) -> None:
    listen(proc, "tcp", line(6819, "0A", 1))
    assert list(ports.check_ports([want(6817)], proc)) == []


def test_a_connection_is_no_listener_and_udp_is_not_tcp(proc: Path) -> None:
    listen(proc, "tcp", line(6817, "01", 1))
    listen(proc, "udp", line(6817, "07", 2))
    assert list(ports.check_ports([want(6817)], proc)) == []
    assert said(ports.check_ports([want(6817, "udp")], proc)) == [("error", "port-taken")]


def test_the_daemons_own_port(proc: Path) -> None:
    listen(proc, "tcp", line(6817, "0A", 1))
    process(proc, 10, "slurmctld", 1, 2)
    assert list(ports.check_ports([want(6817)], proc)) == []


def test_another_program_is_named(proc: Path) -> None:
    listen(proc, "tcp", line(6817, "0A", 1))
    process(proc, 10, "slurmctld", 2)
    process(proc, 77, "nc", 5, 1)
    (finding,) = ports.check_ports([want(6817, setting="slurmctld_parameters")], proc)
    assert finding["message"] == "port 6817/tcp, which slurmctld needs, is taken by nc (process 77)"
    assert finding["hint"] == "stop that program (systemctl status 77), or set slurmctld_parameters"


def test_another_program_beside_ours(proc: Path) -> None:
    """One address of a port is ours, another one not."""
    listen(proc, "tcp", line(6817, "0A", 1) + line(6817, "0A", 2, "0100007F"))
    process(proc, 10, "slurmctld", 1)
    process(proc, 11, "nc", 2)
    assert said(ports.check_ports([want(6817)], proc)) == [("error", "port-taken")]


def test_a_holder_that_is_not_to_be_seen(proc: Path) -> None:
    listen(proc, "tcp", line(6817, "0A", 1))
    (finding,) = ports.check_ports([want(6817)], proc)
    assert "another container" in finding["message"]


@pytest.fixture
def server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_this_process_as_the_kernel_tells_it(server: int) -> None:
    own = Path("/proc/self/comm").read_text().strip()
    (finding,) = ports.check_ports([want(server)])
    assert f"{own} (process {os.getpid()})" in finding["message"]
    assert list(ports.check_ports([{**want(server), "programs": [own]}])) == []

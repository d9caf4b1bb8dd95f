"""When the slurmctld of one of several controllers may start."""

import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/slurmctld/files/usr/local/lib/slurmctld/may_start.py")

CONF = """
ClusterName=lab
#SlurmctldHost=old
SlurmctldHost=ctl1(10.0.0.1)
SlurmctldHost=ctl2(10.0.0.2)
SlurmctldHost=ctl3
SlurmctldTimeout=30
"""


def write_beat(state: Path, when: int, place: int) -> None:
    (state / "heartbeat").write_bytes(struct.pack(">QQ", when, place))


def trouble(
    state: Path, name: str = "ctl1", *, reaches: bool = False, meanwhile: Callable[[], None] = lambda: None
) -> tuple[str, list[object]]:
    """What it says, and what it asked: addresses, and for how many seconds it waited."""
    asked: list[object] = []

    def is_reached(address: str, port: int) -> bool:
        asked.append((address, port))
        return reaches

    def sleep(seconds: float) -> None:
        asked.append(seconds)
        meanwhile()

    return module.lead_trouble(state, CONF, name, reaches=is_reached, sleep=sleep), asked


def test_a_state_that_is_not_mounted_is_not_the_state(tmp_path: Path) -> None:
    assert "is not mounted yet" in module.state_trouble(tmp_path / "state", 5)
    mark = tmp_path / "deploy_shared"
    mark.touch()
    number = mark.stat().st_ino
    assert module.state_trouble(tmp_path, number) == ""
    assert "is another directory than when deploy was here" in module.state_trouble(tmp_path, number + 1)


def test_beside_one_that_leads_and_does_not_hear_it_the_first_one_does_not_start(tmp_path: Path) -> None:
    write_beat(tmp_path, 1000, 1)
    said, asked = trouble(tmp_path, meanwhile=lambda: write_beat(tmp_path, 1007, 1))
    assert said == "ctl2 leads, and cannot be reached at 10.0.0.2"
    assert asked == [("10.0.0.2", 6817), 10]


@pytest.mark.parametrize("place", [1, 2])
def test_one_that_hears_it_gives_up_the_lead(tmp_path: Path, place: int) -> None:
    write_beat(tmp_path, 1000, place)
    assert trouble(tmp_path, reaches=True) == ("", [(("10.0.0.2", "ctl3")[place - 1], 6817)])


def test_one_that_is_lost_leads_no_more(tmp_path: Path) -> None:
    write_beat(tmp_path, 1000, 1)
    assert trouble(tmp_path) == ("", [("10.0.0.2", 6817), 10])


def test_who_led_itself_and_who_begins_asks_nobody(tmp_path: Path) -> None:
    assert trouble(tmp_path) == ("", [])
    write_beat(tmp_path, 1000, 0)
    assert trouble(tmp_path) == ("", [])
    # It stands by, and Slurm has it look at the heartbeat.
    write_beat(tmp_path, 1000, 1)
    assert trouble(tmp_path, "ctl2") == ("", [])
    # Of a controller that is none any more.
    write_beat(tmp_path, 1000, 7)
    assert trouble(tmp_path) == ("", [])


def test_a_host_on_which_nothing_listens_is_reached() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.listen()
        assert module.is_reached("127.0.0.1", port)
    assert module.is_reached("127.0.0.1", port)
    assert not module.is_reached("no-such-host.invalid", port)


def test_it_says_why_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert module.main(str(tmp_path), "1") == 1
    assert capsys.readouterr().err.startswith("slurmctld does not start: ")

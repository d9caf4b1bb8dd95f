"""When the slurmctld of one of several controllers may start."""

import pwd
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


def test_a_configuration_that_was_not_given_last_does_not_lead(tmp_path: Path) -> None:
    assert module.configuration_trouble(tmp_path, "old") == "", "nobody said which one"
    (tmp_path / "deploy_configuration").write_text("new\n")
    said = module.configuration_trouble(tmp_path, "old")
    assert said.startswith("the cluster was given another configuration while this host was away")
    assert "deploy cluster INVENTORY" in said
    assert module.configuration_trouble(tmp_path, "new") == ""
    assert module.configuration_trouble(tmp_path, "") == "", "deploy of before did not say"
    # While a run gives it, and after one that was cut off.
    (tmp_path / "deploy_configuration").write_text("new\nold\n")
    assert module.configuration_trouble(tmp_path, "old") == ""
    (tmp_path / "deploy_configuration").write_text("")
    assert module.configuration_trouble(tmp_path, "old") == ""


def test_a_state_that_was_moved_does_not_lead(tmp_path: Path) -> None:
    (tmp_path / "deploy_moved").write_text("/srv/state\n")
    said = module.configuration_trouble(tmp_path, "")
    assert f"the state was moved from {tmp_path} to /srv/state" in said


def test_the_state_is_that_of_the_configuration_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that moves the state says the new one before slurmctld has it, and the old one may come back."""
    old, new = tmp_path / "old", tmp_path / "new"
    for place in (old, new):
        place.mkdir()
    (new / "deploy_shared").touch()
    (new / "deploy_moved").write_text(f"{old}\n")
    (tmp_path / "slurm.conf").write_text(f"{CONF}StateSaveLocation={old}\n")
    monkeypatch.setattr(module, "CONFIGURATION", tmp_path / "slurm.conf")
    monkeypatch.setattr(module, "OWN", tmp_path / "own")
    monkeypatch.setattr(module, "become_slurm", lambda: "")
    number = (new / "deploy_shared").stat().st_ino
    assert module.trouble(new, number) == ""
    (tmp_path / "slurm.conf").write_text(f"{CONF}StateSaveLocation={new}\n")
    assert "was moved" in module.trouble(new, number)
    (new / "deploy_moved").unlink()
    (new / "deploy_configuration").write_text("new\n")
    (tmp_path / "own").write_text("old\n")
    assert "another configuration" in module.trouble(new, number)


def test_a_heartbeat_that_cannot_be_read_is_not_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root is nobody on the storage of a file server."""
    write_beat(tmp_path, 1000, 1)
    (tmp_path / "deploy_shared").touch()

    def refused(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "slurm.conf").write_text(CONF)
    monkeypatch.setattr(module, "CONFIGURATION", tmp_path / "slurm.conf")
    monkeypatch.setattr(module, "become_slurm", lambda: "")
    monkeypatch.setattr(module.socket, "gethostname", lambda: "ctl1")
    monkeypatch.setattr(Path, "read_bytes", refused)
    number = (tmp_path / "deploy_shared").stat().st_ino
    assert module.trouble(tmp_path, number) == f"{tmp_path} cannot be read: Permission denied"


def test_what_root_starts_goes_on_as_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The units of Slurm before 23.11 start slurmctld as root."""
    became: list[object] = []
    user = pwd.struct_passwd(("slurm", "x", 64030, 64031, "", "/", "/bin/false"))
    monkeypatch.setattr(module.pwd, "getpwnam", lambda _: user)
    monkeypatch.setattr(module.os, "geteuid", lambda: 0)
    for name in ("initgroups", "setgid", "setuid"):
        monkeypatch.setattr(module.os, name, lambda *what, name=name: became.append((name, *what)))
    assert module.become_slurm() == ""
    assert became == [("initgroups", "slurm", 64031), ("setgid", 64031), ("setuid", 64030)]
    monkeypatch.setattr(module.os, "geteuid", lambda: 64030)
    assert module.become_slurm() == ""
    assert len(became) == 3


def test_it_says_why_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "become_slurm", lambda: "")
    assert module.main(str(tmp_path), "1") == 1
    assert capsys.readouterr().err.startswith("slurmctld does not start: ")

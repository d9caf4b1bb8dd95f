"""slurmctld goes on where the host of slurmdbd is gone, and registers with the second one, once."""

import socket
import subprocess
from types import ModuleType

import pytest

from tests.unit.roles.loading import load_program

UP, DOWN = "Slurmctld(primary) at ctl1 is UP", "Slurmctld(primary) at ctl1 is DOWN"
OTHER = "Slurmctld(backup) at ctl2 is UP"


@pytest.fixture(scope="module")
def loaded() -> ModuleType:
    return load_program("roles/slurmctld/files/usr/local/lib/slurmctld/registers.py")


class Host:
    """Whether the second slurmdbd serves, look by look, and what was said here; ends after the last look."""

    def __init__(self, serves: str, *, ping: str = UP, version: str = "24.11.5", refusals: int = 0) -> None:
        self.looks: list[str] = [*serves]
        self.ping, self.version, self.refusals = ping, version, refusals
        self.told: list[str] = []
        self.ended: list[str] = []
        self.now, self.can_end = "", 0

    def run(self, *command: str) -> tuple[int, str]:
        if command == ("scontrol", "ping"):
            return 0, f"{self.ping}\n{OTHER}"
        if command[0] == "slurmctld":
            return 0, f"slurm-wlm {self.version}"
        if command[0] == "ss":
            self.ended.append(" ".join(command[4:]))
            return self.can_end, "ESTAB" if len(self.ended) == 1 else ""
        self.told.append(" ".join(command))
        self.refusals -= 1
        return (1, "refused") if self.refusals >= 0 else (0, "")

    def serves(self, host: str, _port: int) -> bool:
        """In each look the first one is asked, and then the second."""
        if host == "dbd1":
            if not self.looks:
                raise KeyboardInterrupt
            self.now = self.looks.pop(0)
        return host in {"1": ["dbd1"], "2": ["dbd2"], "b": ["dbd1", "dbd2"]}.get(self.now, [])

    def watch(
        self, loaded: ModuleType, patch: pytest.MonkeyPatch, name: str = "ctl1", *, second: str = "dbd2"
    ) -> list[str]:
        """All looks, one after the other; what slurmctld was told in them."""
        patch.setattr(loaded, "run", self.run)
        patch.setattr(loaded, "serves", self.serves)
        patch.setattr(loaded.socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("10.0.0.9", 6819))] * 2)
        patch.setattr(loaded.time, "sleep", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            loaded.main(name, "6819", "dbd1", second)
        return self.told


@pytest.mark.parametrize(
    ("looks", "times"),
    [("111", 0), ("1222", 1), ("2", 0), ("22122", 2), ("22-222", 2), ("bbbb", 0), ("---2", 1)],
)
def test_it_registers_once_each_time_that_the_second_one_takes_over(
    loaded: ModuleType, monkeypatch: pytest.MonkeyPatch, looks: str, times: int
) -> None:
    assert Host(looks).watch(loaded, monkeypatch) == ["scontrol reconfigure"] * times


@pytest.mark.parametrize(("ping", "leader"), [(UP, "ctl1"), (DOWN, "ctl2")])
@pytest.mark.parametrize("name", ["ctl1", "ctl2"])
def test_the_controller_that_leads_does_it(
    loaded: ModuleType, monkeypatch: pytest.MonkeyPatch, ping: str, leader: str, name: str
) -> None:
    told = Host("22", ping=ping).watch(loaded, monkeypatch, name)
    assert told == (["scontrol reconfigure"] if name == leader else [])


def test_an_older_one_is_started_anew(loaded: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Host("22", version="22.05.8").watch(loaded, monkeypatch)
    assert told == ["systemctl try-restart slurmctld"]


def test_one_that_refuses_is_asked_again(
    loaded: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Host("2222", refusals=1).watch(loaded, monkeypatch) == ["scontrol reconfigure"] * 2
    assert "does not learn what sacctmgr changes: scontrol reconfigure: refused" in capsys.readouterr().err


ENDED = "--kill state established dst 10.0.0.9 dport = :6819"


@pytest.mark.parametrize(("looks", "times"), [("111", 0), ("1-1-", 0), ("1--", 1), ("-22-b", 3), ("bb2", 0)])
@pytest.mark.parametrize("second", ["dbd2", ""])
def test_connections_to_a_host_that_is_gone_are_ended(
    loaded: ModuleType, monkeypatch: pytest.MonkeyPatch, looks: str, times: int, second: str
) -> None:
    host = Host(looks)
    told = host.watch(loaded, monkeypatch, second=second)
    assert host.ended == [ENDED] * times
    assert second or not told


def test_what_was_ended_is_said_and_nothing_else(
    loaded: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Host("----").watch(loaded, monkeypatch)
    assert capsys.readouterr().err == "ended connections to dbd1, which is gone:\nESTAB\n"


def test_a_kernel_that_ends_no_connections_is_named(
    loaded: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = Host("--")
    host.can_end = 1
    host.watch(loaded, monkeypatch)
    assert capsys.readouterr().err == "connections to dbd1, which is gone, could not be ended: ESTAB\n"


def test_who_listens_serves(loaded: ModuleType) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert loaded.serves("127.0.0.1", port)
    assert not loaded.serves("127.0.0.1", port)
    assert not loaded.serves("nowhere.invalid", port)


def test_a_command_that_is_not_there_is_no_answer(
    loaded: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> None:
        raise FileNotFoundError("scontrol")

    monkeypatch.setattr(subprocess, "run", none)
    assert loaded.run("scontrol") == (1, "scontrol")
    assert not loaded.leads("scontrol", "ctl1")

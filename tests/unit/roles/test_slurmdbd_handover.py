"""The first slurmdbd that starts has the second one end before, and neither depends on the other."""

import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/slurmdbd/files/usr/local/lib/slurmdbd/handover.py")
BOTH, ALONE = "10.0.0.1:3306,10.0.0.2:3306,", "10.0.0.1:3306,,"
ADDRESS = ("10.0.0.1", 6819)


class Hosts:
    """The table that both hosts have, and whether the first one's slurmdbd listens."""

    def __init__(self) -> None:
        self.tables = {"table_defs_table", "deploy_handover"}
        self.members = BOTH
        self.asked, self.given = "", ""
        self.statements: list[str] = []
        self.is_answered = True
        self.first_listens = False
        self.ticks: Callable[[], None] = lambda: None

    def sql(self, statement: str, seconds: float = 10) -> list[str]:
        del seconds
        if not self.is_answered:
            raise module.DatabaseError
        self.statements.append(statement)
        if "information_schema.global_status" in statement:
            return [self.members]
        if found := re.search(r"table_name = '(\w+)'", statement):
            return ["yes"] if found[1] in self.tables else []
        if statement.startswith("CREATE TABLE"):
            self.tables.add("deploy_handover")
        elif found := re.search(r"VALUES \('asked', '(\w*)'\)", statement):
            self.asked = found[1]
        elif statement.startswith("REPLACE"):
            assert re.search(r"SELECT 'given', turn FROM .* WHERE what = 'asked'", statement), statement
            self.given = self.asked
        elif statement.startswith("SELECT asked.turn"):
            return [self.asked] if self.asked not in {"", self.given} else []
        return []

    def listens(self, host: str, port: int) -> bool:
        assert (host, port) == ADDRESS
        return self.first_listens

    def passes(self, seconds: float) -> None:
        """Time that nobody waits for here."""
        self.now += seconds
        self.ticks()

    now = 0.0


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Hosts:
    made = Hosts()
    monkeypatch.setattr(module, "sql", made.sql)
    monkeypatch.setattr(module, "listens", made.listens)
    monkeypatch.setattr(module.time, "sleep", made.passes)
    monkeypatch.setattr(module.time, "monotonic", lambda: made.now)
    monkeypatch.setattr(module.time, "time", lambda: made.now)
    monkeypatch.setattr(module, "_IN_VAIN", tmp_path / "deploy" / "in-vain")
    return made


def follow() -> None:
    assert module.main("follow", "slurm_acct_db", ADDRESS[0], str(ADDRESS[1])) == 0


def test_the_first_one_starts_when_the_second_one_has_said_that_it_ended(hosts: Hosts) -> None:
    def second_ends() -> None:
        if hosts.now > 1:
            module.Handover("slurm_acct_db").give()

    hosts.ticks = second_ends
    assert module.main("ask", "slurm_acct_db") == 0
    assert 1 < hosts.now < 2
    assert hosts.given == hosts.asked != ""


def test_it_starts_without_an_answer_and_asks_no_more(
    hosts: Hosts, capsys: pytest.CaptureFixture[str]
) -> None:
    assert module.main("ask", "slurm_acct_db") == 0
    assert 15 <= hosts.now < 16
    assert hosts.asked == ""
    assert "did not say within 15 s" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["the other host", "the table", "an answer of MariaDB"])
def test_it_starts_at_once_where_nobody_can_be_asked(hosts: Hosts, missing: str) -> None:
    hosts.members = ALONE if missing == "the other host" else BOTH
    hosts.tables -= {"deploy_handover"} if missing == "the table" else set()
    hosts.is_answered = missing != "an answer of MariaDB"
    assert module.main("ask", "slurm_acct_db") == 0
    assert hosts.now == 0
    assert hosts.asked == ""
    assert not [said for said in hosts.statements if said.startswith(("REPLACE", "CREATE"))]


def test_the_second_one_waits_until_the_first_one_has_begun(hosts: Hosts) -> None:
    hosts.asked = "a1"

    def first_begins() -> None:
        hosts.first_listens = hosts.now > 2

    hosts.ticks = first_begins
    follow()
    assert hosts.given == "a1"
    assert 2 + 5 <= hosts.now < 10, "what slurmctld says first is written by then"
    assert not module.refuses()


def test_the_second_one_waits_for_a_first_one_that_asks_once_more_meanwhile(hosts: Hosts) -> None:
    hosts.asked = "a1"

    def first_begins_again() -> None:
        hosts.first_listens = hosts.now > 2
        if hosts.now > 4:
            hosts.asked = "a2"

    hosts.ticks = first_begins_again
    follow()
    assert hosts.given == "a2"


@pytest.mark.parametrize("asked", ["", "done"])
def test_the_second_one_starts_at_once_where_nothing_is_asked(hosts: Hosts, asked: str) -> None:
    hosts.asked = hosts.given = asked
    follow()
    assert hosts.now == 0


def test_the_second_one_serves_where_the_first_one_does_not_begin_and_does_not_end_for_it_again_soon(
    hosts: Hosts, capsys: pytest.CaptureFixture[str]
) -> None:
    def asks_again_and_again() -> None:
        hosts.asked = f"a{hosts.now // 6:.0f}"

    hosts.ticks = asks_again_and_again
    asks_again_and_again()
    follow()
    assert 30 <= hosts.now < 60, "systemd ends a start that takes 90 s"
    assert "the first slurmdbd did not answer within 30 s" in capsys.readouterr().err
    assert module._IN_VAIN.exists()


def test_a_database_that_does_not_answer_keeps_the_second_one_from_nothing(hosts: Hosts) -> None:
    hosts.is_answered = False
    follow()
    assert hosts.now == 0


class Stop(Exception):  # noqa: N818 - an end, no error
    """Ends the watch, which has no end."""


@pytest.fixture
def told(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, ...]]]:
    """What systemd is told by a watch that looks three times."""
    found: list[tuple[str, ...]] = []
    looks: list[float] = []

    def look() -> None:
        looks.append(hosts.now)
        if len(looks) == 3:
            raise Stop

    hosts.ticks = look
    monkeypatch.setattr(module.subprocess, "run", lambda command, **_: found.append(command))
    yield found
    assert len(looks) == 3


def watch() -> None:
    with pytest.raises(Stop):
        module.main("watch", "slurm_acct_db")


def test_the_watch_restarts_one_that_runs(
    hosts: Hosts, told: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts.asked = "a1"
    monkeypatch.setattr(module, "said", lambda *_: "active")
    watch()
    assert set(told) == {("systemctl", "try-restart", "slurmdbd")}
    assert hosts.given == "", "that is for the one that has ended to say"


@pytest.mark.parametrize("state", ["inactive", "failed"])
def test_the_watch_says_at_once_that_none_runs(
    hosts: Hosts, told: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    hosts.asked = "a1"
    monkeypatch.setattr(module, "said", lambda *_: state)
    watch()
    assert not told
    assert hosts.given == "a1"


def test_the_watch_ends_none_for_one_that_did_not_begin_a_short_time_ago(
    hosts: Hosts, told: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts.asked = "a1"
    module._IN_VAIN.parent.mkdir()
    module._IN_VAIN.touch()
    hosts.now = module._IN_VAIN.stat().st_mtime + 599
    monkeypatch.setattr(module, "said", lambda *_: "active")
    watch()
    assert len(told) == 2, "ten minutes are over at the second look of three"


def test_the_watch_makes_the_table_only_where_slurmdbd_has_made_its_own(
    hosts: Hosts, told: list[tuple[str, ...]]
) -> None:
    hosts.tables = set()
    looks, found = hosts.ticks, []

    def slurmdbd_begins() -> None:
        found.append("deploy_handover" in hosts.tables)
        hosts.tables.add("table_defs_table")
        looks()

    hosts.ticks = slurmdbd_begins
    watch()
    assert found == [False, True, True]
    assert not told


def test_the_watch_goes_on_where_the_database_does_not_answer(
    hosts: Hosts, told: list[tuple[str, ...]]
) -> None:
    hosts.is_answered = False
    watch()
    assert not told


class Process:
    """A slurmdbd that ends by some signals."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends_by: set[int]) -> None:
        self.signals: list[int] = []
        self.ends_by = ends_by
        self.place = tmp_path / "4711"
        self.place.touch()
        monkeypatch.setattr(module.os, "kill", self.kill)
        monkeypatch.setattr(module, "Path", lambda path: tmp_path / Path(path).name)

    def kill(self, process: int, number: int) -> None:
        assert process == 4711
        if not self.place.exists():
            raise ProcessLookupError
        self.signals.append(number)
        if number in self.ends_by:
            self.place.unlink()


@pytest.mark.parametrize(
    ("port", "ends_by", "signals"),
    [
        ("LISTEN 0 4096 0.0.0.0:6819 0.0.0.0:*", {signal.SIGTERM}, [signal.SIGTERM]),
        ("LISTEN 0 4096 0.0.0.0:6819 0.0.0.0:*", {signal.SIGKILL}, [signal.SIGTERM, signal.SIGKILL]),
        ("", {signal.SIGKILL}, [signal.SIGKILL]),
    ],
)
@pytest.mark.usefixtures("hosts")
def test_one_that_takes_no_sigterm_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, port: str, ends_by: set[int], signals: list[int]
) -> None:
    process = Process(monkeypatch, tmp_path, ends_by)
    monkeypatch.setattr(module, "said", lambda *_: port)
    assert module.main("end", "6819", "4711") == 0
    assert process.signals == signals


@pytest.mark.usefixtures("hosts")
def test_one_that_has_ended_already_is_no_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Process(monkeypatch, tmp_path, set()).place.unlink()
    monkeypatch.setattr(module, "said", lambda *_: "")
    assert module.main("end", "6819", "4711") == 0
    assert module.main("end", "6819") == 0, "systemd has no process then"


def test_what_mariadb_refuses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "import sys; sys.exit('ERROR 1047 (08S01): WSREP has not yet prepared node')"
    real = module.subprocess.run
    monkeypatch.setattr(
        module.subprocess, "run", lambda _, **options: real((sys.executable, "-c", told), **options)
    )
    with pytest.raises(module.DatabaseError, match="1047"):
        module.sql("SELECT 1")

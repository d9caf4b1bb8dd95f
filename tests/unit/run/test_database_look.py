"""What a member of the database says of itself, also while it ends."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.run import database_look as module

STATE = "uuid: 5f0c0000-0000-0000-0000-000000000001\nseqno: {}\nsafe_to_bootstrap: {}\n"
PRIMARY = "wsrep_cluster_status\tPrimary\nwsrep_local_state_comment\tSynced\nwsrep_cluster_size\t3\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_DATA", tmp_path)
    monkeypatch.setattr(module, "_KEY", tmp_path / "member.pem")
    monkeypatch.setattr(module, "_PAUSE", 0)
    (tmp_path / "grastate.dat").write_text(STATE.format(-1, 0))
    return tmp_path


def test_one_that_is_ending_is_waited_for(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states: Iterator[str] = iter(["deactivating", "deactivating", "inactive"])

    def run(*command: str) -> tuple[str, bool]:
        if command[0] == "systemctl":
            state = next(states)
            if state == "inactive":
                (data / "grastate.dat").write_text(STATE.format(17, 1))
            return f"{state}\n", False
        return "ERROR 2002 (HY000): Can't connect", False

    monkeypatch.setattr(module, "_run", run)
    said = module.look("slurm_acct_db")
    assert (said["serves"], said["at"], said["was_last"]) == (False, 17, True)


def test_one_that_does_not_end_serves_nobody(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data
    monkeypatch.setattr(module, "_SECONDS_TO_END", 0)
    state = ["deactivating"]
    monkeypatch.setattr(
        module, "_run", lambda *command: (state[0] if command[0] == "systemctl" else PRIMARY, True)
    )
    said = module.look("slurm_acct_db")
    assert (said["serves"], said["is_synced"], said["votes"]) == (False, True, 3)
    state[0] = "active"
    assert module.look("slurm_acct_db")["serves"]


@pytest.mark.parametrize(
    ("state", "is_synced"),
    [
        ("Synced", True),
        ("Donor/Desynced", True),
        ("Joined", False),
        ("Joining: receiving State Transfer", False),
    ],
)
def test_one_from_which_another_is_copied_has_all_rows(
    data: Path, monkeypatch: pytest.MonkeyPatch, state: str, *, is_synced: bool
) -> None:
    assert data
    monkeypatch.setattr(module, "_run", lambda *_: (PRIMARY.replace("Synced", state), True))
    assert module.look("slurm_acct_db")["is_synced"] is is_synced


@pytest.mark.parametrize(
    ("has_key", "says", "is_alone"), [(False, "", True), (True, "", False), (False, PRIMARY, False)]
)
def test_a_member_is_known_by_its_key_and_by_what_it_says(
    data: Path, monkeypatch: pytest.MonkeyPatch, says: str, *, has_key: bool, is_alone: bool
) -> None:
    monkeypatch.setattr(module, "_run", lambda *_: (says, True))
    if has_key:
        (data / "member.pem").touch()
    assert module.look("slurm_acct_db")["is_alone"] is is_alone


@pytest.mark.parametrize(
    ("name", "directory"), [("slurm_acct_db", "slurm_acct_db"), ("slurm-acct$1", "slurm@002dacct@00241")]
)
def test_tables_are_found_where_mariadb_puts_those_of_that_name(
    data: Path, monkeypatch: pytest.MonkeyPatch, name: str, directory: str
) -> None:
    monkeypatch.setattr(module, "_run", lambda *_: ("", True))
    assert not module.look(name)["has"]
    (data / directory).mkdir()
    (data / directory / "acct_table.ibd").touch()
    assert module.look(name)["has"]


def test_databases_of_others_are_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_run", lambda *_: ("", True))
    for name in ("mysql", "sys", "performance_schema", "test", "slurm_acct_db", "wiki", "our@002dshop"):
        (data / name).mkdir()
        (data / name / "a_table.frm").touch()
    (data / "empty").mkdir()
    assert module.look("slurm_acct_db")["others"] == ["our-shop", "wiki"]


def test_who_listens_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(module, "_PORT", server.getsockname()[1])
        assert module.reaches("127.0.0.1")
    assert not module.reaches("127.0.0.1")


_FOUND = "WSREP: Recovered position 5f0c0000-0000-0000-0000-000000000001:"
_SERVES = "[Note] /usr/sbin/mariadbd: ready for connections."
_JOINS = "[Note] WSREP: Shifting OPEN -> PRIMARY (TO: 101)"
_WAITS = "[Note] WSREP: Shifting CLOSED -> OPEN (TO: 0)"
_DISK = "WSREP: Failed to start mysqld for wsrep recovery: 'InnoDB: No space left on device'"


@pytest.mark.parametrize(
    ("lines", "at"),
    [
        ([f"{_FOUND}100"], 100),
        ([f"{_FOUND}100", _SERVES, f"{_FOUND}900"], 900),
        ([f"{_FOUND}100", _WAITS, "mariadb.service: Failed with result 'exit-code'."], 100),
        ([f"{_FOUND}100", _SERVES], None),
        ([f"{_FOUND}100", _JOINS], None),
        ([f"{_FOUND}100", _SERVES, "-- Boot --", _DISK], None),
        ([f"{_FOUND}100", _WAITS, _DISK], None),
        ([f"{_FOUND}100", "WSREP: Recovered position 1a2b0000-0000-0000-0000-000000000002:7"], None),
        ([], None),
    ],
    ids=[
        *("found", "found anew", "found, and nobody else was there", "served since", "got rows since"),
        *("it does not start any more", "it does not start once more", "of another cluster", "never"),
    ],
)
def test_how_far_rows_go_is_what_was_found_since_the_server_served(
    data: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], at: int | None
) -> None:
    assert data
    log = "\n".join([*lines, ""])
    monkeypatch.setattr(module, "_run", lambda *words: (log if words[0] == "journalctl" else "", True))
    assert module.look("slurm_acct_db")["at"] == at


NONE = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("lines", "cluster", "at"),
    [
        ([f"{_FOUND}100"], "5f0c0000-0000-0000-0000-000000000001", 100),
        ([f"{_FOUND}100", _SERVES], "", None),
        ([f"WSREP: Recovered position {NONE}:-1"], "", None),
    ],
    ids=["found", "served since", "nothing there"],
)
def test_of_which_cluster_it_is_while_a_table_is_altered_is_what_was_found(
    data: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], cluster: str, at: int | None
) -> None:
    (data / "grastate.dat").write_text(f"uuid: {NONE}\nseqno: -1\nsafe_to_bootstrap: 0\n")
    (data / "member.pem").touch()
    log = "\n".join([*lines, ""])
    monkeypatch.setattr(module, "_run", lambda *words: (log if words[0] == "journalctl" else "", True))
    said = module.look("slurm_acct_db")
    assert (said["cluster"], said["at"], said["is_in_doubt"]) == (cluster, at, True)
    # Whose rows nobody wants: somebody has taken the file away.
    (data / "grastate.dat").unlink()
    said = module.look("slurm_acct_db")
    assert (said["cluster"], said["at"], said["is_in_doubt"]) == ("", None, False)


def test_what_was_found_before_the_last_boot_is_of_before(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert data
    asked: list[tuple[str, ...]] = []

    def run(*words: str) -> tuple[str, bool]:
        asked.append(words)
        return "", True

    monkeypatch.setattr(module, "_run", run)
    module.look("slurm_acct_db")
    (of_the_journal,) = [words for words in asked if words[0] == "journalctl"]
    assert "-b" in of_the_journal

"""What members of a database know each other by, and their leave to begin."""

import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.unit.roles.loading import ROOT, load_module

identity = load_module("playbooks/filter_plugins/member_identity.py")
begin = load_module("roles/mariadb/library/mariadb_begin.py")


def test_the_same_secret_is_the_same_identity_and_another_is_not() -> None:
    found = identity.member_identity("one secret")
    assert found == identity.member_identity("one secret")
    other = identity.member_identity("another secret")
    assert found["key"] != other["key"]
    certificate = x509.load_pem_x509_certificate(found["certificate"].encode())
    key = serialization.load_pem_private_key(found["key"].encode(), None)
    assert certificate.public_key() == key.public_key()
    certificate.verify_directly_issued_by(certificate)


def test_without_a_secret_there_is_none() -> None:
    with pytest.raises(ValueError, match="mariadb_cluster_key is empty"):
        identity.member_identity("")


@pytest.mark.parametrize("before", ["0", "1"])
def test_a_member_that_may_begin_keeps_all_else(before: str) -> None:
    kept = f"# GALERA saved state\nversion: 2.1\nuuid:    1a2b\nseqno:   7\nsafe_to_bootstrap: {before}\n"
    assert begin.may_begin(kept) == kept.replace(f"bootstrap: {before}", "bootstrap: 1")


@pytest.mark.parametrize("before", ["0", "1"])
@pytest.mark.parametrize("seqno", ["7", "-1"])
def test_one_that_failed_to_begin_may_no_more_than_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, seqno: str
) -> None:
    """The server that did not come up may have written the file anew: what it wrote stays."""
    kept = "uuid:    1a2b\nseqno:   {}\nsafe_to_bootstrap: {}\n"
    state = tmp_path / "grastate.dat"
    state.write_text(kept.format("7", before))
    found: list[str] = []
    monkeypatch.setattr(begin, "_NEW_CLUSTER_FILE", tmp_path / "none")

    class FailedError(Exception):
        pass

    def run_command(words: list[str], **_: object) -> tuple[int, str, str]:
        if words == ["galera_new_cluster"]:
            found.append(state.read_text())
            state.write_text(kept.format(seqno, "1"))
            return 1, "", "no space left"
        return 0, "", ""

    def fail_json(msg: str) -> None:
        raise FailedError(msg)

    params = {"begins": True, "key_file": None, "state_file": str(state)}
    module: Any = SimpleNamespace(
        params=params, check_mode=False, run_command=run_command, fail_json=fail_json, get_bin_path=bool
    )
    monkeypatch.setattr(begin, "AnsibleModule", lambda **_: module)
    monkeypatch.setattr(begin, "unit_of_mariadb", lambda _: {"ActiveState": "inactive"})
    with pytest.raises(FailedError, match="MariaDB does not begin: no space left"):
        begin.main()
    assert found == [kept.format("7", "1")]
    assert state.read_text() == kept.format(seqno, before)


@pytest.mark.parametrize("check_mode", [False, True])
def test_one_that_does_not_begin_joins_whatever_a_killed_beginning_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, check_mode: bool
) -> None:
    left = tmp_path / "mariadb-wsrep-new-cluster"
    left.write_text("_WSREP_NEW_CLUSTER=--wsrep-new-cluster\n")
    monkeypatch.setattr(begin, "_NEW_CLUSTER_FILE", left)
    commands: list[list[str]] = []
    answers: list[dict[str, Any]] = []

    def run_command(words: list[str], **_: object) -> tuple[int, str, str]:
        commands.append(words)
        return 0, "", ""

    class EndedError(Exception):
        pass

    def exit_json(**answer: object) -> None:
        answers.append(answer)
        raise EndedError

    params = {"begins": False, "key_file": None, "state_file": str(tmp_path / "grastate.dat")}
    module: Any = SimpleNamespace(
        params=params, check_mode=check_mode, run_command=run_command, exit_json=exit_json
    )
    monkeypatch.setattr(begin, "AnsibleModule", lambda **_: module)
    monkeypatch.setattr(begin, "unit_of_mariadb", lambda _: {"ActiveState": "inactive"})
    with pytest.raises(EndedError):
        begin.main()
    assert left.exists() is check_mode
    assert (["systemctl", "unset-environment", "_WSREP_NEW_CLUSTER"] in commands) is not check_mode
    assert [answer["changed"] for answer in answers] == [False]


unit = load_module("roles/mariadb/module_utils/member_unit.py")


@pytest.mark.parametrize(
    ("state", "after", "expected"),
    [("active", 60, True), ("active", -60, False), ("inactive", 60, False), ("deactivating", 60, False)],
)
def test_a_server_that_was_started_before_a_file_was_written_has_not_read_it(
    tmp_path: Path, state: str, after: int, *, expected: bool
) -> None:
    key = tmp_path / "key.pem"
    key.write_text("a key")
    started = time.monotonic() - time.time() + key.stat().st_mtime - after
    said = f"ActiveState={state}\nExecMainStartTimestampMonotonic={int(started * 1e6)}\n"
    module: Any = SimpleNamespace(run_command=lambda *_, **__: (0, said, ""))
    found = unit.unit_of_mariadb(module)
    assert unit.is_older(found, str(key)) is expected
    assert not unit.is_older(found, str(tmp_path / "none.pem"))


def test_one_that_is_ending_serves_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"systemctl": "ActiveState=active\n", "mariadb": "wsrep_cluster_status\tPrimary\n"}
    module: Any = SimpleNamespace(
        run_command=lambda words, **_: (0, said[words[0]], ""), get_bin_path=lambda _: "/usr/bin/mariadb"
    )
    monkeypatch.setattr(begin, "unit_of_mariadb", unit.unit_of_mariadb)
    assert begin._serves(module)
    said["systemctl"] = "ActiveState=deactivating\n"
    assert not begin._serves(module)


alone = load_module("roles/mariadb/library/mariadb_alone.py")


@pytest.mark.parametrize(
    ("status", "state", "size", "was_last", "said"),
    [
        ("Primary", "Synced", 1, False, ""),
        ("Primary", "Synced", 2, False, "1 other is a member still"),
        ("Primary", "Synced", 3, False, "2 others are members still"),
        ("Primary", "Joined", 1, False, "it has not all rows yet"),
        ("non-Primary", "Initialized", 1, False, "it does not serve, so nobody knows"),
        ("", "", 0, False, "it does not serve, so nobody knows"),
        ("", "", 0, True, ""),
    ],
)
def test_a_member_goes_on_alone_where_it_is_the_last_and_has_all_rows(
    status: str, state: str, size: int, said: str, *, was_last: bool
) -> None:
    answer = {
        "wsrep_cluster_status": status,
        "wsrep_local_state_comment": state,
        "wsrep_cluster_size": str(size),
    }
    why = alone.trouble({name: value for name, value in answer.items() if value}, was_last=was_last)
    assert why.startswith(said)
    assert bool(why) == bool(said)


VARS = yaml.safe_load((ROOT / "roles/mariadb/vars/main.yml").read_text())


@pytest.mark.parametrize(
    ("addresses", "has_others"),
    [
        ("10.0.0.2:3306,10.0.0.5:3306,", True),
        ("10.0.0.2:3306,,10.0.0.5:3306", True),
        ("[fd00::2]:3306,,[fd00::5]:3306", True),
        (",10.0.0.2:3306", False),
        ("10.0.0.2:3306,", False),
        ("", False),
    ],
)
def test_an_arbitrator_has_no_rows(addresses: str, *, has_others: bool) -> None:
    assert bool(re.search(VARS["__mariadb_others"], addresses)) is has_others

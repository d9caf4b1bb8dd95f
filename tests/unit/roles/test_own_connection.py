import pwd
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

own = load_module("playbooks/module_utils/own_connection.py")


def process(proc: Path, number: int, parent: int, environment: bytes) -> None:
    (proc / str(number)).mkdir()
    (proc / str(number) / "environ").write_bytes(environment)
    (proc / str(number) / "stat").write_text(f"{number} (a (name)) S {parent} 1 1 0")


def test_the_connection_is_that_of_the_session_above(tmp_path: Path) -> None:
    process(tmp_path, 30, 20, b"HOME=/root\0")
    process(tmp_path, 20, 10, b"A=b\0SSH_CONNECTION=192.0.2.9 50000 10.0.0.1 2222\0")
    assert own.connection(30, tmp_path) == ("192.0.2.9", 2222)


def test_without_ssh_there_is_none(tmp_path: Path) -> None:
    process(tmp_path, 30, 1, b"HOME=/root\0")
    assert own.connection(30, tmp_path) is None
    assert own.connection(99, tmp_path) is None


SOMEBODY = pwd.getpwall()[1]


@pytest.mark.parametrize(
    ("environment", "login_uid", "expected"),
    [
        ({"SUDO_USER": "carol"}, "0", "carol"),
        ({}, "0", "root"),
        ({}, "4294967295", "root"),
        ({}, "", "root"),
        ({}, str(SOMEBODY.pw_uid), SOMEBODY.pw_name),
    ],
)
def test_the_account_of_this_run(
    tmp_path: Path, environment: dict[str, str], login_uid: str, expected: str
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "loginuid").write_text(login_uid)
    assert own.connected_as(environment, tmp_path) == expected


def test_without_an_audit_system_it_is_root(tmp_path: Path) -> None:
    assert own.connected_as({}, tmp_path) == "root"

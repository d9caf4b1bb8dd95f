"""The program that tells what users of a host meet, on this one."""

import getpass
import os
import pwd
import socket
from pathlib import Path

import pytest

from deploy.validate.programs import surroundings


def test_people_are_told_from_the_system(tmp_path: Path) -> None:
    file = tmp_path / "passwd"
    file.write_text("root:x:0:0::/:/bin/sh\nann:x:1001:1::/:/bin/sh\n+nis\nnobody:x:65534:1::/:/x\n")
    assert surroundings.ordinary(str(file)) == ["ann"]


def test_users_and_groups() -> None:
    found = surroundings.users(["root", "nobody-has-this-name"])
    assert found == {
        "root": {"uid": 0, "gid": 0, "shell": found["root"]["shell"], "has_shell": True},  # type: ignore[index]
        "nobody-has-this-name": None,
    }
    assert surroundings.groups(["root", "nobody-has-this-name"]) == {"root": 0, "nobody-has-this-name": None}


def test_directories(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    told = surroundings.directory(str(tmp_path))
    assert told == {"mode": 0o777, "uid": os.getuid(), "mounted": "", "is_read_only": False}
    assert surroundings.directory(str(tmp_path / "none")) is None
    assert surroundings.mounted("/proc") == "proc"


def test_own_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"here": "127.0.0.1", "there": "192.0.2.77"}
    assert surroundings.addresses_of(known) == ["here"]
    monkeypatch.setattr(surroundings, "is_own", lambda _address: True)
    assert surroundings.addresses_of(known) == []


def test_a_closed_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "_NO_LOGINS", (str(tmp_path / "nologin"),))
    assert surroundings.closed() == ""
    (tmp_path / "nologin").touch()
    assert surroundings.closed() == str(tmp_path / "nologin")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that is the login shell of whoever runs the tests."""
    program = tmp_path / "shell"
    me = pwd.getpwnam(getpass.getuser())
    entry = type(me)((*me[:5], str(tmp_path), str(program)))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: entry)
    return program


@pytest.mark.parametrize(
    ("text", "why", "umask"),
    [
        ('umask 027; exec sh -c "$3"', "", "0027"),
        ('echo welcome; exec sh -c "$3"', "", "0022"),
        ('sleep 3600 & exec sh -c "$3"', "", "0022"),
        ("exit 3", "ends with exit code 3 before its command", ""),
        ("echo no quota; exit 1", "ends with exit code 1 before its command: no quota", ""),
        ("exit 0", "ends with exit code 0 before its command", ""),
        ("sleep 60", "does not come to its command within 1 s", ""),
    ],
)
def test_login_shell(shell: Path, text: str, why: str, umask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "_SHELL_SECONDS", 1 if text == "sleep 60" else 60)
    shell.write_text(f"#!/bin/sh\numask 022\n{text}\n")
    shell.chmod(0o755)
    told = surroundings.login_shell("me")
    assert told is not None
    assert told["umask"] == umask
    assert told["why"].endswith(why)
    assert bool(told["why"]) is bool(why)


def test_a_login_shell_begins_at_home(shell: Path, tmp_path: Path) -> None:
    shell.write_text("#!/bin/sh\npwd >$0.told\n")
    shell.chmod(0o755)
    surroundings.login_shell("me")
    assert Path(f"{shell}.told").read_text().strip() == str(tmp_path)


def test_no_login_shell(shell: Path) -> None:
    told = surroundings.login_shell("me")
    assert told is not None
    assert told["why"].endswith(f"{shell}: not found")
    assert surroundings.login_shell(None) is None


def test_everything() -> None:
    told = surroundings.look({"addresses": {}, "users": [], "groups": [], "user": None})
    assert told["name"].partition(".")[0] == socket.gethostname().partition(".")[0]
    assert told["directories"].keys() == {"/tmp", "/var/tmp", "/dev/shm"}

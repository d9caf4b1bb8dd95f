"""The scripts of a first login run here, in a home of the test's; ssh, sudo and apt-get are stand-ins."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.run.first_login import Passwords, Welcome, public_key, welcome
from deploy.run.ssh import Unanswered

KEY = "ssh-ed25519 AAAAC3Nz admin@here"
PROGRAMS = {
    # The last argument is what the other side's shell gets.
    "ssh": """\
echo "$SSH_ASKPASS_REQUIRE $*" >> "$LOG"
[ "$("$SSH_ASKPASS")" = "$EXPECTED" ] || { echo "Permission denied (publickey,password)." >&2; exit 255; }
for last; do :; done
exec sh -c "$last"
""",
    "id": 'case "$1" in -u) echo 1000 ;; *) echo ubuntu ;; esac\n',
    "sudo": """\
echo "sudo $*" >> "$LOG"
case "$1" in
  -k) exit 1 ;;
  -S) IFS= read -r given; [ "$given" = "$SUDO" ] || exit 1; shift 3; exec "$@" < /dev/null ;;
esac
""",
    "python3": "",
    "apt-get": "echo out; exit 100\n",
}


class Machine:
    """What the other side has: programs, a home, a log of what was called."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.log, self.programs = place / "home", place / "log", place / "programs"
        self.home.mkdir()
        self.programs.mkdir()
        for name, text in PROGRAMS.items():
            (self.programs / name).write_text(f"#!/bin/sh\n{text}")
            (self.programs / name).chmod(0o755)
        for name, value in {
            "HOME": str(self.home),
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "LOG": str(self.log),
            "EXPECTED": "let me in",
            "SUDO": "more",
        }.items():
            monkeypatch.setenv(name, value)

    def welcome(self, login: str = "let me in", sudo: str = "more") -> object:
        command = [str(self.programs / "ssh"), "-T", "-o", "BatchMode=yes", "--", "node1", "as root"]
        return welcome(command, KEY, Passwords(login, sudo), has_rule=False)

    def has_nothing_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of all programs there are, only those without which nothing works."""
        for name in ("sh", "cat", "grep", "mkdir", "tail", "true"):
            (self.programs / name).symlink_to(f"/usr/bin/{name}")
        monkeypatch.setenv("PATH", str(self.programs))

    @property
    def keys(self) -> str:
        return (self.home / ".ssh" / "authorized_keys").read_text()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_key_is_let_in_once_beside_others(machine: Machine) -> None:
    (machine.home / ".ssh").mkdir()
    (machine.home / ".ssh" / "authorized_keys").write_text("ssh-rsa AAAA other")
    assert machine.welcome() == Welcome(("let the key in",))
    assert machine.welcome() == Welcome(())
    assert machine.keys == f"ssh-rsa AAAA other\n{KEY}\n"


def test_passwords_are_in_no_command(machine: Machine) -> None:
    machine.welcome()
    said = machine.log.read_text()
    assert "let me in" not in said
    assert "more" not in said
    assert said.startswith("force -oBatchMode=no ")


def test_a_wrong_password_is_what_ssh_says_of_it(machine: Machine) -> None:
    assert machine.welcome("no") == Unanswered("Permission denied (publickey,password).")
    assert not (machine.home / ".ssh").exists()


@pytest.mark.parametrize(
    ("sudo", "problem"), [("", "sudo asks for a password: type -K"), ("no", "sudo refuses the password")]
)
def test_sudo_that_does_not_let_it_is_named(machine: Machine, sudo: str, problem: str) -> None:
    came = machine.welcome(sudo=sudo)
    assert isinstance(came, Welcome)
    assert came.did == ("let the key in",)
    assert came.problem.startswith(problem)


def test_no_sudo_at_all_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine.programs / "sudo").unlink()
    machine.has_nothing_else(monkeypatch)
    came = machine.welcome()
    assert isinstance(came, Welcome)
    assert came.problem == "sudo is not installed: log in as root for once, with --user root"


def test_what_is_missing_is_installed_or_why_not_is_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.programs / "python3").unlink()
    machine.has_nothing_else(monkeypatch)
    came = machine.welcome()
    assert came == Welcome(("let the key in",), "apt-get install python3 failed")
    (machine.programs / "apt-get").write_text("#!/bin/sh\n")
    assert machine.welcome() == Welcome(("installed python3",))


def test_the_key_is_that_of_the_inventory_else_the_first_that_ssh_takes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(tmp_path / name)]
        subprocess.run(make, check=True)
    settings = {"identityfile": [str(tmp_path / "none"), str(tmp_path / "one")]}
    plain, named = ["ssh", "-T", "node1", "x"], ["ssh", "-T", "-i", str(tmp_path / "two"), "node1", "x"]
    assert str(public_key(plain, settings)).endswith(" one")
    assert str(public_key(named, settings)).endswith(" two")
    (tmp_path / "two.pub").unlink()
    assert str(public_key(named, settings)).startswith("ssh-ed25519 ")
    assert public_key(["ssh", "-T", "-i", str(tmp_path / "gone"), "node1", "x"], settings) is None


def test_a_memory_in_which_nothing_can_be_executed_is_for_the_password_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /dev/shm often is: ssh would be denied the program, and offer no password."""
    machine, memory = Machine(tmp_path, monkeypatch), tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr("deploy.place.place_for_secrets", lambda: memory)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "home"))
    (machine.programs / "ssh").write_text(
        f"#!/bin/sh\ncase $SSH_ASKPASS in {memory}/*) echo 'Permission denied' >&2; exit 255 ;; esac\n"
        f"cat {memory}/*/password >> $LOG\n" + PROGRAMS["ssh"]
    )
    statvfs = os.statvfs
    monkeypatch.setattr(
        os,
        "statvfs",
        lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC) if Path(path) == memory else statvfs(path),
    )
    assert not isinstance(machine.welcome(), Unanswered)
    assert machine.log.read_text().startswith("let me in\n")
    assert [*memory.iterdir()] == []
    assert [*machine.home.glob("deploy-*")] == []

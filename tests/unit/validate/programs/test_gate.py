"""The program that asks PAM about admins."""

import grp
import pwd

import pytest

from deploy.validate.programs import gate

GROUPS = {"sudo": (27, ["zoe", "ann"]), "ops": (900, [])}
USERS = {"zoe": 1000, "ann": 1000, "ben": 900, "eve": 1000, "root": 0}


@pytest.fixture
def accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with these accounts, whose PAM refuses zoe."""

    def group(name: str) -> grp.struct_group:
        number, members = GROUPS[name]
        return grp.struct_group((name, "x", number, members))

    def user(name: str) -> pwd.struct_passwd:
        return pwd.struct_passwd((name, "x", 1, USERS[name], "", "/", "/bin/sh"))

    monkeypatch.setattr(grp, "getgrnam", group)
    monkeypatch.setattr(pwd, "getpwnam", user)
    monkeypatch.setattr(pwd, "getpwall", lambda: [user(name) for name in USERS])
    program = "import sys; print('Permission denied'); sys.exit(sys.argv[1] == 'zoe')"
    monkeypatch.setattr(gate, "_ACCOUNT", program)
    monkeypatch.delenv("SUDO_USER", raising=False)


def asked(users: tuple[str, ...] = (), groups: tuple[str, ...] = (), connecting: str = "") -> dict[str, str]:
    arguments = {"connecting": connecting, "users": list(users), "groups": list(groups)}
    return dict(gate.ask(arguments)["admins"])


@pytest.mark.usefixtures("accounts")
def test_admins_are_those_who_are_named_and_members_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked() == {}
    assert asked(("eve", "gone"), ("sudo", "none", "ops"), "root") == {
        "root": "",
        "eve": "",
        "ann": "",
        "ben": "",
        "zoe": "Permission denied",
    }
    monkeypatch.setenv("SUDO_USER", "eve")
    assert asked(connecting="eve") == {"eve": ""}


@pytest.mark.usefixtures("accounts")
def test_of_a_large_group_some_speak_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "_ASKED", 1)
    assert asked(("eve",), ("sudo",)) == {"eve": "", "ann": ""}


@pytest.mark.usefixtures("accounts")
@pytest.mark.parametrize(
    ("program", "seconds", "why"),
    [
        ("import sys; sys.exit(3)", 60, "exit code 3"),
        ("raise OSError('no libpam')", 60, "OSError: no libpam"),
        ("import time; time.sleep(30)", 1, "PAM gives no answer within 1 s"),
    ],
)
def test_a_pam_that_cannot_be_asked_lets_nobody_in(
    monkeypatch: pytest.MonkeyPatch, program: str, seconds: int, why: str
) -> None:
    monkeypatch.setattr(gate, "_ACCOUNT", program)
    monkeypatch.setattr(gate, "_SECONDS", seconds)
    assert asked(("eve",)) == {"eve": why}


def test_pam_itself_is_asked() -> None:
    # Whatever it says here, and to whom: it is PAM that answers.
    said = gate.reason("root")
    assert "Error" not in said
    assert "exit code" not in said

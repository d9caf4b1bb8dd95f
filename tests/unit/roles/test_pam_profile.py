"""Whether pam-auth-update has taken a profile."""

from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

profile = load_module("playbooks/library/pam_profile.py")
TEXT = """\
Name: x
Conflicts: sss
Account-Type: Additional
Account:
	[success=1 default=ignore]	pam_localuser.so
	[default=bad success=ok]	pam_sss.so
Session-Type: Additional
Session:
	optional	pam_sss.so
"""
ACCOUNT = """\
account [success=1 new_authtok_reqd=done default=ignore]	pam_unix.so
account	[success=1 default=ignore] pam_localuser.so
account	[default=bad success=ok] pam_sss.so
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "pam.d").mkdir()
    monkeypatch.setattr(profile, "_ENABLED", tmp_path / "lib")
    monkeypatch.setattr(profile, "_IN_FORCE", tmp_path / "pam.d")
    (tmp_path / "lib/account").write_text(
        "Module: unix\n[success=end]\tpam_unix.so\n\n"
        "Module: own\n[success=1 default=ignore]\tpam_localuser.so\n[default=bad success=ok]\tpam_sss.so\n"
    )
    (tmp_path / "lib/session").write_text(
        "Module: unix\nrequired\tpam_unix.so\n\nModule: own\noptional\tpam_sss.so\n\n"
    )
    (tmp_path / "pam.d/common-account").write_text(ACCOUNT)
    (tmp_path / "pam.d/common-session").write_text("session\toptional pam_sss.so\n")
    return tmp_path


def test_a_profile_with_its_lines_is_in_force(machine: Path) -> None:
    assert machine.exists()
    assert profile.is_in_force("own", TEXT)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("lib/account", "Module: unix\n"),
        ("lib/account", "Module: own\n\nModule: sss\n"),
        ("lib/session", "Module: unix\n"),
        ("lib/session", "Module: own\n\nModule: sss\n"),
        ("lib/session", "Module: own\nrequired\tpam_sss.so\n"),
        ("lib/auth", "Module: own\nrequired\tpam_sss.so\n"),
        ("pam.d/common-account", "account [default=bad success=ok] pam_sss.so\n"),
        ("pam.d/common-session", "session required pam_unix.so\n"),
    ],
)
def test_what_is_missing_or_excluded_is_noticed(machine: Path, file: str, text: str) -> None:
    (machine / file).write_text(text)
    assert not profile.is_in_force("own", TEXT)


def test_a_profile_of_sessions_alone_needs_no_other_lines(machine: Path) -> None:
    text = "Name: x\nConflicts: systemd, other\nSession-Type: Additional\nSession:\n\toptional\tpam_sss.so\n"
    (machine / "lib/account").write_text("Module: unix\n")
    assert profile.is_in_force("own", text)
    assert profile.excluded_by(text) == ["systemd", "other"]
    for others in ("systemd", "other"):
        (machine / "lib/session").write_text(f"Module: own\noptional\tpam_sss.so\n\nModule: {others}\n")
        assert not profile.is_in_force("own", text)


AUTH = """\
Auth-Type: Primary
Auth:
{0}	[success=end default=ignore]	pam_sss.so use_first_pass
Auth-Initial:
{0}	[success=end default=ignore]	pam_sss.so forward_pass
Password-Type: Primary
Password:
	[success=end user_unknown=ignore default=die]	pam_sss.so use_authtok
Password-Initial:
	[success=end user_unknown=ignore default=die]	pam_sss.so
"""
LOCAL = "\t[success=1 default=ignore]\tpam_localuser.so\n"


def put_into_force(machine: Path, guard: str, option: str) -> None:
    """The lines for passwords, as pam-auth-update writes them after another profile's."""
    lines = [line.lstrip() for line in (guard, f"\t[success=end default=ignore]\tpam_sss.so {option}\n")]
    (machine / "lib/auth").write_text(
        "Module: unix\n[success=end]\tpam_unix.so\nModule: own\n" + "".join(lines)
    )
    (machine / "pam.d/common-auth").write_text(
        "auth\t[success=2]\tpam_unix.so\n"
        + "".join(f"auth\t{line}" for line in lines if line).replace("=end", "=1")
        + "auth\trequisite\tpam_deny.so\n"
    )
    line = "[success={} user_unknown=ignore default=die]\tpam_sss.so use_authtok\n"
    (machine / "lib/password").write_text("Module: own\n" + line.format("end"))
    (machine / "pam.d/common-password").write_text("password\t" + line.format("1"))


@pytest.mark.parametrize("option", ["use_first_pass", "forward_pass"])
def test_lines_for_passwords_count(machine: Path, option: str) -> None:
    """A profile of which nothing else has changed is not in force before they are."""
    old, new = (f"{TEXT}{AUTH.format(guard)}" for guard in ("", LOCAL))
    assert not profile.is_in_force("own", old)
    put_into_force(machine, "", option)
    assert profile.is_in_force("own", old)
    assert not profile.is_in_force("own", new)
    put_into_force(machine, LOCAL, option)
    assert profile.is_in_force("own", new)
    assert not profile.is_in_force("own", old)
    # Passwords are asked for no more.
    assert not profile.is_in_force("own", TEXT)


@pytest.mark.parametrize("kind", ["auth", "password"])
def test_lines_for_passwords_that_somebody_took_out_are_noticed(machine: Path, kind: str) -> None:
    put_into_force(machine, LOCAL, "use_first_pass")
    (machine / f"pam.d/common-{kind}").write_text(f"{kind}\trequired\tpam_unix.so\n")
    assert not profile.is_in_force("own", f"{TEXT}{AUTH.format(LOCAL)}")

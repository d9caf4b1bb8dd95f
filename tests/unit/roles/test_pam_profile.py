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
        "Module: unix\n[success=end]\tpam_unix.so\n\nModule: own\n[x]\ty\n\n"
    )
    (tmp_path / "lib/session").write_text("Module: unix\nrequired\tpam_unix.so\n\nModule: own\n[x]\ty\n\n")
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
        (machine / "lib/session").write_text(f"Module: own\n\nModule: {others}\n")
        assert not profile.is_in_force("own", text)

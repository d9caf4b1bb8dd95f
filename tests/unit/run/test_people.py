"""What hosts say of people, with a real key and sacctmgr's words."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.run import people

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root reads as somebody else")
SAID = {
    "associations": "research||||normal|\nlaser|alice||laser|laser|0\nroot|root||normal||\n",
    "users": "alice|laser|None\nroot|root|Administrator\n",
    "accounts": "laser|alice,carol\nresearch|\n",
}


def answering(*command: str) -> tuple[str, bool]:
    # One database may have several clusters.
    assert command[4] != "associations" or "cluster=lab" in command
    return SAID[command[4]], True


def test_who_charges_what(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    brought = tmp_path / "memberships.json"
    monkeypatch.setattr(people, "_run", answering)
    monkeypatch.setattr(people, "_BROUGHT", brought)
    assert people.charged("lab")["brought"] == {}
    brought.write_text(json.dumps({"laser": {"open": ["bob"], "closed": ["alice"], "held": {}}}))
    assert people.charged("lab") == {
        "memberships": [
            ["laser", "alice", "", "laser", "laser", "0"],
            ["root", "root", "", "normal", "", ""],
        ],
        "users": {"alice": ["laser", "none"], "root": ["root", "administrator"]},
        "managers": {"laser": ["alice", "carol"], "research": []},
        "brought": {"laser": ["bob", "alice"]},
    }


def test_a_slurmdbd_that_is_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(people, "_run", lambda *_: ("sacctmgr: error: Connection refused\n", False))
    people.main("charged", {"cluster": "lab"})
    assert json.loads(capsys.readouterr().out.strip().removeprefix("deploy:")) == {
        "trouble": "sacctmgr: error: Connection refused"
    }


def test_keys_with_their_restrictions(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "alice at home", "-f", str(key)], check=True
    )
    public = key.with_suffix(".pub").read_text()
    shown = subprocess.run(["ssh-keygen", "-lf", str(key)], capture_output=True, text=True, check=True).stdout
    text = (
        f'# mine\n\nno-pty,from="192.0.2.0/24,!192.0.2.7",command="a \\"b\\" c" {public}{public}not a key\n'
    )
    first, second = people.keys(text)
    assert first["fingerprint"] == second["fingerprint"] == shown.split()[1]
    assert first["comment"] == "alice at home"
    assert first["restrictions"] == ["no-pty", 'from="192.0.2.0/24,!192.0.2.7"', 'command="a \\"b\\" c"']
    assert second["restrictions"] == []


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of alice, which everybody may look for."""
    path = Path(tempfile.mkdtemp(prefix="test-people-", dir="/run"))
    path.chmod(0o755)
    (path / ".ssh").mkdir()
    entry = SimpleNamespace(
        pw_uid=2001, pw_gid=2001, pw_gecos="Alice,,", pw_shell="/bin/bash", pw_dir=str(path)
    )
    monkeypatch.setattr("pwd.getpwnam", lambda _: entry)
    monkeypatch.setattr("os.getgrouplist", lambda *_: [0])
    monkeypatch.setattr(people, "_run", lambda *_: ("", False))
    yield path
    shutil.rmtree(path)


@as_root
def test_of_what_a_home_has_only_keys_get_out(home: Path) -> None:
    secret = home / "secret"
    secret.write_text("root:$y$hash:1:::::\n")
    keys = home / ".ssh/authorized_keys"
    keys.symlink_to(secret)
    assert people.known(["alice"], [])["alice"]["keys"] == []
    keys.unlink()
    os.link(secret, keys)
    found = people.known(["alice"], [])["alice"]
    assert (found["keys"], found["keys_unread"]) == ([], "")
    assert (found["name"], found["groups"], found["sudo"]) == ("Alice", ["root"], False)


@as_root
def test_keys_are_those_that_sshd_takes_and_what_cannot_be_read_is_said(home: Path) -> None:
    public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGVkMjU1MTktb2YtYS10ZXN0LWFsb25lLTAwMDAw"
    (home / "elsewhere").write_text(f"{public} by a link")
    (home / ".ssh/authorized_keys").symlink_to("../elsewhere")
    (home / ".ssh/authorized_keys2").write_text(f"{public} hidden\n")
    found = people.known(["alice"], [])["alice"]
    assert [key["comment"] for key in found["keys"]] == ["by a link", "hidden"]
    (home / ".ssh/authorized_keys2").chmod(0o600)
    (home / ".ssh/authorized_keys").unlink()
    (home / ".ssh/authorized_keys").symlink_to("/etc/shadow")
    found = people.known(["alice"], [])["alice"]
    assert (found["keys"], found["keys_unread"]) == (
        [],
        f"{home}/.ssh/authorized_keys2: Permission denied",
    )


@pytest.mark.parametrize(("day", "is_closed"), [("1", True), ("20000", True), ("99999", False), ("", False)])
def test_an_account_that_has_expired_is_closed(
    monkeypatch: pytest.MonkeyPatch,
    day: str,
    is_closed: bool,  # noqa: FBT001
) -> None:
    monkeypatch.setattr(people, "_run", lambda *_: (f"alice:*:20000:0:99999:7::{day}:\n", True))
    assert people._is_closed("alice") == is_closed


def test_a_name_that_only_slurm_knows() -> None:
    assert people.known(["nobody-of-this-name"], ["no-group-of-this-name"])["nobody-of-this-name"] == {
        "source": "nowhere"
    }

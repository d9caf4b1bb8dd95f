"""What hosts say of people, with a real key and sacctmgr's words."""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from deploy.run import people

SAID = {
    "associations": "research||||normal|\nlaser|alice||laser|laser|0\nroot|root||normal||\n",
    "users": "alice|laser|None\nroot|root|Administrator\n",
    "accounts": "laser|alice,carol\nresearch|\n",
}


def answering(*command: str) -> tuple[str, bool]:
    return SAID[command[4]], True


def test_who_charges_what(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    brought = tmp_path / "memberships.json"
    monkeypatch.setattr(people, "_run", answering)
    monkeypatch.setattr(people, "_BROUGHT", brought)
    assert people.charged()["brought"] == {}
    brought.write_text(json.dumps({"laser": {"open": ["bob"], "closed": ["alice"], "held": {}}}))
    assert people.charged() == {
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
    people.main("charged", {})
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


def test_of_what_a_home_has_only_keys_get_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:$y$hash:1:::::\n")
    ssh = tmp_path / "alice" / ".ssh"
    ssh.mkdir(parents=True)
    (ssh / "authorized_keys").symlink_to(secret)
    entry = SimpleNamespace(
        pw_uid=2001, pw_gid=2001, pw_gecos="Alice,,", pw_shell="/bin/bash", pw_dir=str(tmp_path / "alice")
    )
    monkeypatch.setattr("pwd.getpwnam", lambda _: entry)
    monkeypatch.setattr("os.getgrouplist", lambda *_: [0])
    monkeypatch.setattr(people, "_run", lambda *_: ("", False))
    assert people.known(["alice"], [])["alice"]["keys"] == []
    (ssh / "authorized_keys").unlink()
    os.link(secret, ssh / "authorized_keys")
    found = people.known(["alice"], [])["alice"]
    assert found["keys"] == []
    assert (found["name"], found["groups"], found["sudo"]) == ("Alice", ["root"], False)


def test_a_name_that_only_slurm_knows() -> None:
    assert people.known(["nobody-of-this-name"], ["no-group-of-this-name"])["nobody-of-this-name"] == {
        "source": "nowhere"
    }

"""What is done on a node that is to be repaired."""

import json
from pathlib import Path

import pytest

from deploy.run import remedies

MOUNTS = """\
/dev/vda1 / ext4 rw 0 0
srv:/home /home nfs4 ro 0 0
systemd-1 /auto autofs rw 0 0
"""


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What was run; what begins with `refuses` fails."""
    ran: list[tuple[str, ...]] = []

    def run(*command: str) -> tuple[str, bool]:
        ran.append(command)
        return ("first\nlast\n", False) if "refuses" in command else ("", True)

    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(remedies, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(remedies, "SETTINGS", tmp_path / "node_health.json")
    monkeypatch.setattr(remedies, "DMI", tmp_path)
    monkeypatch.setattr(remedies, "_run", run)
    return ran


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home", [("umount", "--force", "--lazy", "/home"), ("mount", "/home")]),
        ("/missing", [("mount", "/missing")]),
        ("/auto", [("mount", "/auto")]),
        ("/", []),
    ],
)
def test_only_what_a_server_has_is_mounted_anew(
    commands: list[tuple[str, ...]], path: str, expected: list[tuple[str, ...]]
) -> None:
    assert bool(remedies.remount(path)) == (not expected)
    assert commands == expected


def test_a_remedy_that_fails_says_why(commands: list[tuple[str, ...]]) -> None:
    assert remedies.restart("munge") == ""
    assert remedies.restart("refuses") == "last"
    assert commands[0] == ("systemctl", "reset-failed", "munge")


def test_a_sites_own_remedy_is_what_the_node_was_told(commands: list[tuple[str, ...]]) -> None:
    programs = [
        {"name": "licence", "command": ["x"], "repair": ["renew", "now"]},
        {"name": "mute", "repair": None},
    ]
    remedies.SETTINGS.write_text(json.dumps({"programs": programs}))
    assert remedies.own("licence") == ""
    assert commands == [("renew", "now")]
    assert remedies.own("mute") == remedies.own("mute") == "node_health_programs says no repair for mute"


def test_what_a_job_left_is_named_by_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedies, "steps", lambda: ["12.0", "12.batch"])
    assert remedies.leftovers() == "still run here: 12.0, 12.batch"
    monkeypatch.setattr(remedies, "steps", list)
    assert remedies.leftovers() == ""


def test_a_dossier_has_what_is_there(
    commands: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    (remedies.DMI / "product_serial").write_text("4711\n")
    remedies.main("dossier", {})
    said = json.loads(capsys.readouterr().out.strip().removeprefix("deploy:"))
    assert said == {"machine": "product_serial: 4711"}
    assert ("systemctl", "--failed", "--no-legend", "--plain") in commands


def test_an_accident_on_the_node_is_an_answer(
    commands: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert commands == []
    remedies.main("own", {"subject": "licence"})
    assert "FileNotFoundError" in capsys.readouterr().out

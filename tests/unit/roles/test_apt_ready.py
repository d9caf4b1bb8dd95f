from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/bootstrap/library/apt_ready.py")


class FakeHost:
    """An AnsibleModule on a host with services that run, of which some do not start again."""

    def __init__(self, running: set[str], *, stays_down: str = "", check_mode: bool = False) -> None:
        self.running, self.stays_down, self.check_mode = running, stays_down, check_mode
        self.params: dict[str, list[str]] = {
            "put_aside": [],
            "restart": [f"{name}.service" for name in running],
        }
        self.commands: list[str] = []

    def run_command(self, command: list[str], *, check_rc: bool = False) -> tuple[int, str, str]:
        verb, *rest = command[1:]
        code = 0
        if verb == "is-active":
            code = 0 if rest[-1] in self.running else 3
        else:
            self.commands.append(" ".join(command))
            if verb == "try-restart" and self.stays_down in rest:
                self.running.remove(self.stays_down)
                code = 1
        if code and check_rc:
            pytest.fail(f"{command} ended the run of this host")
        return code, "", ""


def set_right(host: FakeHost) -> tuple[list[str], dict[str, Any]]:
    """What was done, and what it disturbs."""
    kept = SimpleNamespace(actions=[])
    return kept.actions, module.set_right(host, kept)


def test_what_runs_otherwise_is_restarted() -> None:
    host = FakeHost({"chrony"})
    actions, impact = set_right(host)
    assert actions == host.commands == ["systemctl try-restart chrony"]
    assert impact == {"kind": "restart", "service": "chrony", "reasons": []}


def test_a_service_that_waits_for_another_host_does_not_end_the_run_here() -> None:
    actions, _ = set_right(FakeHost({"slurmd"}, stays_down="slurmd"))
    assert actions == ["systemctl try-restart slurmd", "slurmd is not up yet"]


def test_a_service_that_is_stopped_stays_so() -> None:
    host = FakeHost({"chrony"})
    host.running.clear()
    assert set_right(host) == ([], {"kind": "none", "service": "", "reasons": []})
    assert host.commands == []


def test_a_look_restarts_nothing(tmp_path: Path) -> None:
    place = tmp_path / "systemd/system/chrony.service.d"
    place.mkdir(parents=True)
    (place / "zz.conf").touch()
    host = FakeHost({"chrony"}, check_mode=True)
    host.params = {"put_aside": [str(place / "zz.conf")], "restart": []}
    actions, impact = set_right(host)
    assert actions == [
        f"{place}/zz.conf put aside",
        "systemctl daemon-reload",
        "systemctl try-restart chrony",
    ]
    assert impact["kind"] == "restart"
    assert host.commands == []
    assert (place / "zz.conf").exists()

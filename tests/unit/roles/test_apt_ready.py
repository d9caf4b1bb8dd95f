import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

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


@pytest.mark.parametrize("check_mode", [False, True])
def test_members_of_the_database_are_left_to_their_role_which_restarts_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, check_mode: bool
) -> None:
    place = tmp_path / "systemd/system/mariadb.service.d"
    place.mkdir(parents=True)
    (place / "override.conf").touch()
    written = place.stat().st_mtime - 3600
    monkeypatch.setattr(module, "put_aside", lambda paths: [f"{path} put aside" for path in paths])
    monkeypatch.setattr(module, "IN_TURN", {"mariadb": place})
    host = FakeHost({"mariadb", "chrony"}, check_mode=check_mode)
    host.params["put_aside"] = [str(place / "override.conf")]
    os.utime(place, (written, written))
    actions, impact = set_right(host)
    assert actions[-1] == "systemctl try-restart chrony"
    assert not any("mariadb" in command for command in host.commands)
    # By this the role restarts it, or a later run where this one is cut off.
    assert (place.stat().st_mtime > written) is not check_mode
    assert "mariadb" in impact["service"]


def test_a_server_that_nobody_gave_settings_of_its_unit_is_restarted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_TURN", {"mariadb": tmp_path / "not there"})
    assert set_right(FakeHost({"mariadb"}))[0] == ["systemctl try-restart mariadb"]


def test_what_has_its_turn_is_restarted_by_its_role_for_the_directory_of_its_unit() -> None:
    variables = yaml.safe_load(Path("roles/mariadb/vars/main.yml").read_text())
    assert {"mariadb": Path(variables["__mariadb_unit_file"]).parent} == module.IN_TURN
    asked = load_module("playbooks/library/service_current.py").drop_in_directories
    assert asked([variables["__mariadb_unit_file"]]) == [str(module.IN_TURN["mariadb"])]


EXPIRED = "Failed to fetch http://v/InRelease  The following signatures were invalid: EXPKEYSIG 1"


@pytest.mark.parametrize(
    ("missed", "present", "refreshes", "warns"),
    [
        ("Failed to fetch http://v/InRelease  Could not connect", ["python3-apt", "tree"], 0, False),
        ("Failed to fetch http://v/InRelease  Could not connect", ["python3-apt"], 1, True),
        (EXPIRED, ["python3-apt"], 1, True),
    ],
)
def test_lists_that_were_missed_are_fetched_anew_where_a_package_is_missing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    missed: str,
    present: list[str],
    refreshes: int,
    *,
    warns: bool,
) -> None:
    said: dict[str, Any] = {}
    warnings: list[str] = []
    actions: list[str] = []

    def refresh() -> list[str]:
        actions.append("refresh")
        return [missed]

    host = SimpleNamespace(
        actions=actions,
        places=SimpleNamespace(root=tmp_path, missed=tmp_path / "missed"),
        wait_for_locks=lambda: None,
        statuses=lambda: "".join(f"ii  {name}\n" for name in present),
        broken=lambda _: [],
        refresh=refresh,
        install=lambda _: [],
    )
    host.places.missed.touch()
    lists = {"packages": ["tree"], "restore_versions": [], "put_aside": [], "restart": []}
    ansible = SimpleNamespace(
        params={
            "archive": "",
            "archive_key": "",
            "cache_valid_hours": 24,
            "check_mode_prepares": False,
            **lists,
        },
        check_mode=False,
        get_bin_path=lambda _: "/usr/bin/apt-get",
        warn=warnings.append,
        exit_json=lambda **given: said.update(given),
    )
    monkeypatch.setattr(module, "AnsibleModule", lambda **_: ansible)
    monkeypatch.setattr(module, "AptHost", lambda _: host)
    monkeypatch.setattr(module, "lists_are_old", lambda *_: False)
    monkeypatch.setattr(module, "forget_left_behind", lambda: False)
    module.main()
    assert said["actions"] == ["refresh"] * refreshes
    assert bool(warnings) is warns
    # A host that waits for somebody else's server would never be done.
    assert "deploy_pending" not in said

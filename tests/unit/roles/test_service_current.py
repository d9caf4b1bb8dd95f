import json
import os
import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.unit.roles.loading import load_module

service = load_module("playbooks/library/service_current.py")


def test_start_time_follows_the_present_clock() -> None:
    properties = {"InactiveExitTimestampMonotonic": "40000000"}
    assert service.moment(properties, "InactiveExitTimestampMonotonic", wall=1000.0, monotonic=100.0) == 940.0


def test_a_drop_in_that_systemd_has_not_read_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_UNITS", f"{tmp_path}/")
    there, missing = tmp_path / "a.service.d.conf", tmp_path / "missing.conf"
    there.touch()
    inputs = [str(there), str(missing), "/etc/hostname"]
    assert service.is_unknown(inputs, {"FragmentPath": "/lib/systemd/system/a.service", "DropInPaths": ""})
    assert not service.is_unknown(inputs, {"FragmentPath": "", "DropInPaths": f"/other {there}"})
    assert not service.is_unknown(inputs, {"FragmentPath": str(there)})


def test_only_inputs_written_after_the_start_count(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for path, when in ((old, 900), (new, 950)):
        path.write_text("x")
        os.utime(path, (when, when))
    inputs = [str(old), str(new), str(tmp_path / "missing")]
    assert service.newer(inputs, 940.0) == [str(new)]


class Module:
    """The part of AnsibleModule that asks whether the service has failed: at the second question it has."""

    def __init__(self, address: str, port: int) -> None:
        self.params = {"name": "x", "address": address, "port": port}
        self.asked: list[list[str]] = []

    def run_command(self, command: list[str]) -> tuple[int, str, str]:
        self.asked.append(command)
        return (0 if len(self.asked) > 1 else 1), "", ""


def test_a_port_answers_once_something_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert service.has_answer(Module("127.0.0.1", port))
        assert service.has_answer(Module("", port))
    fails, waits = Module("127.0.0.1", port), Module("127.0.0.1", port)
    assert not service.has_answer(fails)
    assert fails.asked == [["systemctl", "is-failed", "--quiet", "x"]] * 2
    assert not service.has_answer(waits, patience=0)
    assert len(waits.asked) == 1


def test_an_input_that_was_there_and_is_gone_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_SEEN", tmp_path / "seen")
    kept, gone, never = (tmp_path / name for name in ("kept", "gone", "never"))
    for path in (kept, gone):
        path.touch()
    assert service.Seen("x.service").removed("inputs") == []
    service.Seen("x.service").keep([str(kept), str(gone), str(never)], [str(gone)])
    assert service.Seen("x.service").removed("inputs") == []
    gone.unlink()
    assert service.Seen("x.service").removed("inputs") == [f"{gone} (removed)"]
    assert service.Seen("x.service").removed("reload_inputs") == [f"{gone} (removed)"]
    service.Seen("x.service").keep([str(kept)], [])
    assert service.Seen("x.service").removed("inputs") == []


def test_what_came_beside_an_input_counts_where_the_service_reads_all() -> None:
    inputs = ["/etc/x.conf.d/a", "/etc/x.conf.d/b", "/etc/default/x", "/etc/systemd/system/x.service.d/y"]
    assert service.drop_in_directories(inputs) == ["/etc/x.conf.d", "/etc/systemd/system/x.service.d"]


class EndedError(Exception):
    """What a module answered; ``failed`` is in it when it failed."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer)
        self.answer = answer


class Host:
    """An AnsibleModule on a host whose service is in this state."""

    def __init__(self, state: str, *, check_mode: bool, port: int = 0, job: str = "") -> None:
        self.state, self.check_mode = state, check_mode
        self.job = f"Job={job}\n" if job else ""
        self.commands: list[list[str]] = []
        self.says: dict[str, int] = {}
        self.obeys = False
        self.params: dict[str, Any] = {
            "name": "x",
            "inputs": [],
            "reload_inputs": [],
            "pending": False,
            "reload_pending": False,
            "starts": True,
            "wait": True,
            "address": "",
            "port": port,
            "turn": None,
            "whole": [],
        }

    def __call__(self, **_: object) -> "Host":
        return self

    def run_command(self, command: list[str]) -> tuple[int, str, str]:
        self.commands.append(command[:2])
        if command[0] in self.says:
            return self.says[command[0]], "", ""
        if command[1] == "show":
            active, sub = self.state.split("/")
            said = (
                f"LoadState=loaded\nUnitFileState=enabled\nActiveState={active}\nSubState={sub}\n{self.job}"
            )
            return 0, said, ""
        fails = command[1] in {"start", "restart"} and not self.obeys
        return (1, "", "Job for x.service failed") if fails else (0, "", "")

    def exit_json(self, **answer: object) -> NoReturn:
        raise EndedError(answer)

    def fail_json(self, **answer: object) -> NoReturn:
        raise EndedError({**answer, "failed": True})


def answer_of(host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    monkeypatch.setattr(service, "AnsibleModule", host)
    monkeypatch.setattr(service, "_SEEN", tmp_path / "seen")
    monkeypatch.setattr(service, "_PATIENCE", 0.0)
    with pytest.raises(EndedError) as ended:
        service.main()
    return ended.value.answer


@pytest.mark.parametrize(
    ("state", "action"),
    [
        ("active/running", "none"),
        ("activating/start", "none"),
        ("inactive/dead", "start"),
        ("failed/failed", "start"),
        # It dies whenever systemd starts it again.
        ("activating/auto-restart", "start"),
        ("activating/auto-restart-queued", "start"),
    ],
)
def test_a_preview_says_of_a_service_that_does_not_run_that_it_would_be_started(
    state: str, action: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = answer_of(Host(state, check_mode=True), monkeypatch, tmp_path)
    assert (answer["action"], answer["changed"]) == (action, action != "none")


def test_one_that_dies_again_and_again_fails_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    host = Host("activating/auto-restart", check_mode=False)
    assert answer_of(host, monkeypatch, tmp_path)["failed"]
    assert ["systemctl", "start"] in host.commands


@pytest.mark.parametrize(("job", "waits"), [("", False), ("0", False), ("1234", True)])
def test_one_that_is_about_to_restart_is_waited_for(
    job: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, waits: bool
) -> None:
    """It is active as long as what is bound to it has not ended."""
    host = Host("active/running", check_mode=False, job=job)
    answer_of(host, monkeypatch, tmp_path)
    assert (["systemctl", "start"] in host.commands) is waits


def test_a_preview_says_of_a_port_without_an_answer_that_it_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert (
            answer_of(Host("active/running", check_mode=True, port=port), monkeypatch, tmp_path)["changed"]
            is False
        )
    answer = answer_of(Host("active/running", check_mode=True, port=port), monkeypatch, tmp_path)
    assert "does not answer on port" in answer["msg"]
    started = answer_of(Host("inactive/dead", check_mode=True, port=port), monkeypatch, tmp_path)
    assert started["action"] == "start"


@pytest.mark.parametrize("state", ["inactive/dead", "failed/failed", "activating/auto-restart"])
def test_one_that_is_another_roles_to_start_is_left_as_it_is(
    state: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = Host(state, check_mode=False)
    host.params["starts"] = False
    answer = answer_of(host, monkeypatch, tmp_path)
    assert (answer["changed"], answer["deploy_manages"]) == (False, {})
    assert host.commands == [["systemctl", "show"]]


def test_one_of_another_role_is_restarted_and_not_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = Host("active/running", check_mode=False)
    host.params |= {"starts": False, "inputs": [str(tmp_path / "devices")]}
    assert answer_of(host, monkeypatch, tmp_path)["action"] == "none"
    assert not (tmp_path / "seen").exists(), "what its own role has seen of it stays"
    (tmp_path / "devices").touch()
    host.check_mode = True
    answer = answer_of(host, monkeypatch, tmp_path)
    assert answer["deploy_impact"]["kind"] == answer["action"] == "restart"
    assert answer["deploy_manages"] == {}
    host.check_mode = False
    answer_of(host, monkeypatch, tmp_path)
    assert ["systemctl", "restart"] in host.commands


ASKED = {"command": ["may"], "otherwise": "it goes on as it is"}


@pytest.fixture(params=["written", "beside it", "gone"])
def stale(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    """A service that has not read what there is now, in one of the ways in which that is known."""
    monkeypatch.setattr(service, "_PATIENCE_FOR_TURN", 0.0)
    monkeypatch.setattr(service, "_PATIENCE_FOR_ALL", 0.0)
    monkeypatch.setattr(service, "moment", lambda *_: 1000.0)
    place = tmp_path / "x.conf.d"
    place.mkdir()
    (place / "a").touch()
    host = Host("active/running", check_mode=False)
    host.params |= {"inputs": [str(place / "a")], "turn": ASKED}
    times = {"written": (2000, 1), "beside it": (1, 2000), "gone": (1, 1)}[request.param]
    if request.param == "gone":
        seen = tmp_path / "seen"
        seen.mkdir()
        (seen / "x.json").write_text(json.dumps({"inputs": [str(place / "b")], "reload_inputs": []}))
    os.utime(place / "a", (times[0], times[0]))
    os.utime(place, (times[1], times[1]))
    return host


def test_whatever_would_restart_it_asks_whether_it_may(
    stale: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stale.says = {"may": 1}
    for _ in range(2):
        answer = answer_of(stale, monkeypatch, tmp_path)
        assert (answer["action"], answer["changed"]) == ("none", False)
        assert answer["deploy_pending"] == ["it goes on as it is"]
    assert ["systemctl", "restart"] not in stale.commands
    stale.says = {"may": 0}
    stale.commands.clear()
    stale.obeys = True
    answer = answer_of(stale, monkeypatch, tmp_path)
    assert (answer["action"], answer["deploy_pending"]) == ("restart", [])
    assert stale.commands.index(["may"]) < stale.commands.index(["systemctl", "restart"])


def test_a_preview_asks_nobody(stale: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stale.check_mode = True
    assert answer_of(stale, monkeypatch, tmp_path)["action"] == "restart"
    assert ["may"] not in stale.commands


def test_one_that_was_read_by_the_service_asks_nobody(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = Host("active/running", check_mode=False)
    host.params["turn"] = ASKED
    assert answer_of(host, monkeypatch, tmp_path)["deploy_pending"] == []
    assert ["may"] not in host.commands


@pytest.mark.parametrize(("whole", "failed"), [(0, False), (1, True)])
def test_after_a_restart_it_is_waited_for_until_it_is_whole(
    stale: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, whole: int, *, failed: bool
) -> None:
    stale.params["whole"] = ["whole"]
    stale.says = {"may": 0, "whole": whole}
    stale.obeys = True
    answer = answer_of(stale, monkeypatch, tmp_path)
    assert answer.get("failed", False) is failed
    assert stale.commands.index(["systemctl", "restart"]) < stale.commands.index(["whole"])

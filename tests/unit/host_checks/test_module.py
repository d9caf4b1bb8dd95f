"""The module as a whole, on this machine."""

from typing import Any

import pytest
from ansible.module_utils.user_files import Outcome

from tests.unit.host_checks.checks import module


def test_a_check_that_breaks_is_a_finding_and_hides_no_other() -> None:
    def broken() -> list[dict[str, str]]:
        raise ValueError("odd")

    (finding,) = module._findings("memory", broken)
    assert (finding["severity"], finding["reference"]) == ("warning", "check-not-made")
    assert finding["message"] == "this could not be checked (memory): ValueError: odd"


class FakeModule:
    """An AnsibleModule of which only a few things are needed."""

    def __init__(self, expected: dict[str, object]) -> None:
        entries = [{"address": "10.0.0.1", "names": ["ctl1"]}]
        self.params = {"expected": expected, "hosts_entries": entries, "secrets": {"munge_key": ""}}
        self.commands: list[list[str]] = []

    def get_bin_path(self, name: str) -> str:
        return f"/usr/bin/{name}"

    def run_command(self, command: list[str], environ_update: dict[str, str]) -> tuple[int, str, str]:
        assert environ_update == {"LC_ALL": "C"}
        self.commands.append(command)
        return (0, "Not synchronised", "") if command[0] == "chronyc" else (1, "", "no")


EXPECTED: dict[str, object] = {
    "packages": [],
    "apt_options": "",
    "archive": "",
    "systems": {},
    "name": "ctl1",
    "hostname": "",
    "removes_loopback_name": True,
    "names_to_look_up": [],
    "controllers": ["ctl1"],
    "clock": {"is_steered": True},
    "scratch": [],
    "disks": [{"path": "/", "mb": 0, "mb_to_install": 10**9}],
    "memory_mb": {"needed": 1, "recommended": 1},
    "ports": [],
    "hardware": {},
    "gpu_types_by_name": None,
    "installs_gpu_driver": False,
    "slurm_is_built": False,
    "slurm_has_other_source": False,
    "slurm_wanted": "",
    "slurm_needs": [],
    "has_slurmd": False,
    "has_central_logs": False,
    "cluster": "ours",
    "state_location": "",
}


def references(expected: dict[str, object]) -> dict[str, list[str]]:
    """What the checks find, by subject."""
    host = module.Host(FakeModule(expected))
    return {
        subject: [finding["reference"] for finding in module._findings(subject, check)]
        for subject, check in host.checks().items()
    }


def test_only_what_concerns_a_host_is_checked() -> None:
    found = references(EXPECTED)
    assert [subject for subject in found if "port" in subject or "package" in subject] == []
    assert "secrets" not in found
    assert found["disk space"] == found["memory"] == found["1 names"] == []
    assert "unsupported-system" in next(iter(found.values()))


def test_more_room_and_a_source_are_needed_where_packages_are_missing() -> None:
    found = references({**EXPECTED, "packages": ["no-such-package"]})
    assert found["disk space"] == ["disk-full"]
    assert found["package sources"] == ["no-package-source"]


def test_a_file_system_that_does_not_answer_is_named_and_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(works: list[Any]) -> dict[str, Any]:
        silent = Outcome(problem="/state does not answer within 10 s")
        return {work.path: silent if work.path == "/state" else Outcome(value=True) for work in works}

    def look(*told: object) -> list[Any]:
        assert "/state" not in told, "who looks there hangs"
        return []

    monkeypatch.setattr(module, "as_owners", asked)
    monkeypatch.setattr(module.other_slurm, "check_state", look)
    monkeypatch.setattr(module.other_slurm, "has_state", look)
    state = {"path": "/state", "mb": 0, "mb_to_install": 0}
    disks = [{"path": "/", "mb": 0, "mb_to_install": 0}, state]
    expected = {**EXPECTED, "disks": disks, "state_location": "/state"}
    assert references(expected)["disk space"] == ["disk-silent"]
    assert module.Host(FakeModule(expected)).serves()["state"] is False


def test_ports_are_named() -> None:
    ports = [{"port": port, "protocol": "tcp", "programs": ["x"], "daemon": "x"} for port in (59998, 59999)]
    assert "ports 59998, 59999" in references({**EXPECTED, "ports": ports})


@pytest.mark.parametrize(("answer", "service"), [((0, "1,Normal", ""), "synchronized"), ((1, "", ""), "")])
def test_time_service(monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str, str], service: str) -> None:
    fake = FakeModule(EXPECTED)
    assert module.Host(fake).time_service() == "unsynchronized"
    monkeypatch.setattr(fake, "run_command", lambda *_, **__: answer)
    assert module.Host(fake).time_service() == service

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

sys.modules["ansible.module_utils.node_hardware"] = load_module("playbooks/module_utils/node_hardware.py")
module = load_module("playbooks/library/node_status.py")
action = load_module("playbooks/action_plugins/node_status.py")

RECORDINGS = Path(__file__).parent / "node_status"
SERVICES = """\
Result=success
LoadState=loaded
ActiveState=active
StateChangeTimestampMonotonic=1125096681

Result=signal
LoadState=loaded
ActiveState=failed
StateChangeTimestampMonotonic=2742182225

Result=success
LoadState=not-found
ActiveState=inactive
StateChangeTimestampMonotonic=0
"""
TRACKING = (
    "0AD52102,10.0.0.2,11,1795265642.356833565,0.000025389,-0.000001793,0.000226992,-0.051,-0.002,0.373,"
    "0.000072772,0.000039617,64.3,{leap}\n"
)


def _service(name: str, load: str, active: str, result: str, seconds: float | None) -> dict[str, Any]:
    return {"name": name, "load": load, "active": active, "result": result, "seconds": seconds}


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_nodes_as_scontrol_lists_them(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        nodes = module.nodes_of((RECORDINGS / f"{release}.txt").read_text(encoding="utf-8"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert nodes == {
        "node1": {
            "state": "IDLE+DRAIN",
            "reason": "bad disk | sdb=7 é",
            "by": "root",
            "since": 1795267312.0,
        },
        "node2": {
            "state": "DOWN+NOT_RESPONDING",
            "reason": "Not responding",
            "by": "slurm",
            "since": 1795267339.0,
        },
        "node3": {"state": "IDLE", "reason": "", "by": "", "since": None},
    }


@pytest.mark.parametrize(
    ("end", "reason", "by"),
    [
        ("Reason=out [for repair]=x [ann@2026-11-21T13:21:52] Comment=c", "out [for repair]=x", "ann"),
        ("Reason=without a time", "without a time", ""),
        ("AveWatts=0", "", ""),
    ],
)
def test_reasons(end: str, reason: str, by: str) -> None:
    node = module.nodes_of(f"NodeName=n1 OS=Linux x State=DOWN* ThreadsPerCore=1 {end}\n")["n1"]
    assert (node["state"], node["reason"], node["by"]) == ("DOWN*", reason, by)


def test_other_lines_of_scontrol_are_no_nodes() -> None:
    assert module.nodes_of("No nodes in the system\n") == {}


def test_services_as_systemctl_shows_them() -> None:
    assert module.parse_services(["chrony", "slurmd", "sackd"], SERVICES, 2752.2) == [
        _service("chrony", "loaded", "active", "success", 1627.1),
        _service("slurmd", "loaded", "failed", "signal", 10.0),
        _service("sackd", "not-found", "inactive", "success", None),
    ]


def test_failed_units() -> None:
    text = "slurmd.service loaded failed failed Slurm node daemon\nodd.mount loaded failed failed /odd\n"
    assert module.parse_failed_units(text) == ["slurmd.service", "odd.mount"]
    assert module.parse_failed_units("") == []


@pytest.mark.parametrize(("leap", "synchronized"), [("Normal", True), ("Not synchronised", False)])
def test_tracking_as_chronyc_prints_it(leap: str, synchronized: bool) -> None:  # noqa: FBT001
    found = module.parse_tracking(TRACKING.format(leap=leap))
    assert found == {"synchronized": synchronized, "ahead": -0.000025389}


def test_what_chronyc_says_otherwise_is_no_answer() -> None:
    with pytest.raises(module.NoAnswerError, match="chronyc: it said '506 Cannot talk to daemon'"):
        module.parse_tracking("506 Cannot talk to daemon\n")


@pytest.mark.parametrize(
    ("command", "seconds", "why"),
    [
        (["no-such-program"], 60, "no-such-program: No such file or directory"),
        (["sh", "-c", "echo first; echo last >&2; exit 3"], 60, "sh: last"),
        (["false"], 60, "false: exit code 1"),
        (["sleep", "60"], 1, "sleep: no answer within 1 s"),
    ],
)
def test_programs_that_give_no_answer(
    command: list[str], seconds: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SECONDS", seconds)
    with pytest.raises(module.NoAnswerError) as raised:
        module.ask(command)
    assert str(raised.value) == why


@pytest.mark.parametrize("name", ["munge", "slurmctld"])
def test_slurm_is_not_asked_when_it_cannot_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ask", lambda _: pytest.fail("asked"))
    services = [_service(name, "loaded", "failed", "exit-code", 1.0)]
    assert module.ask_slurm(services) == {"error": f"{name} does not run"}


def test_a_silent_slurm_and_chrony_are_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(command: list[str]) -> str:
        raise module.NoAnswerError(command[0], "no answer within 4 s")

    monkeypatch.setattr(module, "ask", silent)
    services = [_service("slurmctld", "loaded", "active", "success", 1.0)]
    assert module.ask_slurm(services) == {"error": "scontrol: no answer within 4 s"}
    assert module.ask_clock() == {"error": "chronyc: no answer within 4 s"}


class _Action(action.ActionModule):  # type: ignore[misc, name-defined]
    """The action plugin with a host whose clock is an hour ahead."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self._answer = answer

    def _execute_module(self, **_: object) -> dict[str, Any]:
        return dict(self._answer)

    def _low_level_execute_command(self, _command: str, *, sudoable: bool) -> dict[str, str]:
        assert not sudoable
        return {"stdout": f"{time.time() + 3600:.9f}\n"}


def test_the_clock_is_looked_at_over_the_open_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action.ActionBase, "run", lambda *_: {})
    least, most = _Action({"deploy_answer": {}}).run()["deploy_answer"]["ahead"]
    assert 3599 < least <= 3600 <= most < 3601
    assert _Action({"failed": True, "msg": "why"}).run() == {"failed": True, "msg": "why"}

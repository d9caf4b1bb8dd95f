import json
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

drain = load_module("roles/reboot/library/slurm_node_drain.py")
wanted = load_module("roles/reboot/library/reboot_wanted.py")


def test_jobs() -> None:
    assert drain.parse_jobs("17 alice\n18_2 bob\n\n") == ["17 (alice)", "18_2 (bob)"]


def test_drained_by_deploy() -> None:
    rows = "node1|deploy: maintenance\nnode1|deploy: maintenance\nnode2|fan 3 is broken\nnode3|none\n"
    rows += "node4|deploy: maintenance : Not responding\nnode5|deploy: maintenance of fans (alice)\n"
    assert drain.parse_drained(rows) == {"node1", "node4"}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({"IDLE"}, True),
        ({"MIXED", "PLANNED"}, True),
        ({"IDLE", "DRAIN"}, False),
        ({"IDLE", "NOT_RESPONDING"}, False),
        ({"DOWN"}, False),
        ({"UNKNOWN"}, False),
    ],
)
def test_who_is_in_service(states: set[str], expected: bool) -> None:  # noqa: FBT001
    assert drain.is_serving(frozenset(states)) == expected


@pytest.mark.parametrize(
    ("states", "reason", "expected"),
    [
        ({"IDLE"}, "", False),
        ({"IDLE", "DRAIN"}, "fan 3 is broken", True),
        ({"DOWN"}, "fan 3 is broken", True),
        ({"DOWN"}, "Not responding", False),
        ({"DOWN"}, "", False),
    ],
)
def test_who_is_held_by_somebody(states: set[str], reason: str, expected: bool) -> None:  # noqa: FBT001
    assert drain.is_held(frozenset(states), reason) == expected


@pytest.mark.parametrize(
    ("states", "reason", "of_slurm", "expected"),
    [
        ({"IDLE", "DRAIN"}, "deploy: maintenance", [], True),
        ({"IDLE"}, "deploy: maintenance", [], False),
        ({"IDLE", "DRAIN"}, "gres/gpu count reported lower than configured (1 < 7)", [], False),
        (
            {"IDLE", "DRAIN"},
            "gres/gpu count reported lower than configured (1 < 7)",
            ["gres/gpu count"],
            True,
        ),
        ({"IDLE", "DRAIN"}, "Low RealMemory, gres/gpu count reported lower", ["gres/gpu count"], False),
        ({"IDLE", "DRAIN"}, "fan 3 is broken", ["gres/gpu count"], False),
    ],
)
def test_what_is_resumed(
    states: set[str],
    reason: str,
    of_slurm: list[str],
    expected: bool,  # noqa: FBT001
) -> None:
    assert drain.is_to_be_resumed(frozenset(states), reason, of_slurm) == expected


def test_reasons_are_those_that_roles_left(tmp_path: Path) -> None:
    assert wanted.read_reasons(tmp_path / "none") == []
    (tmp_path / "nvidia_driver").write_text("another driver\n")
    assert wanted.read_reasons(tmp_path) == ["another driver"]


def test_a_drain_that_an_admins_displaced_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "drains.json"
    monkeypatch.setattr(drain, "LEDGER", ledger)
    assert drain.forget_displaced("node1") is False
    ours = {"node": "node1", "who": "root", "why": drain.REASON, "since": 1, "is_foreign": True}
    admins = {"node": "node1", "who": "alice", "why": drain.REASON, "since": 2}
    ledger.write_text(json.dumps([ours, {**ours, "node": "node2"}, admins]))
    assert drain.forget_displaced("node1") is True
    assert json.loads(ledger.read_text()) == [{**ours, "node": "node2"}, admins]
    assert drain.forget_displaced("node1") is False

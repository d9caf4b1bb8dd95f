"""Reservations as they are declared: what scontrol is told, by what it showed (Slurm 24.11)."""

import json
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

reservations = load_module("roles/slurm_reservations/module_utils/reservation_plan.py")
module = load_module("roles/slurm_reservations/library/slurm_reservations.py")

NOW = datetime(2026, 12, 1, 12, 0)  # noqa: DTZ001 - the controller's clock; a Tuesday
MAINTENANCE = {"name": "maint", "start": "2026-12-24T08:00", "duration": "4:00:00", "flags": ["MAINT"]}
SHOWN = (
    "ReservationName=maint StartTime=2026-12-24T08:00:00 EndTime=2026-12-24T12:00:00 Duration=04:00:00 "
    "Nodes=node[1-3] NodeCnt=3 CoreCnt=6 Features=(null) PartitionName=(null) "
    "Flags=MAINT,SPEC_NODES,ALL_NODES TRES=cpu=6 "
    "Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) "
    "MaxStartDelay=(null)\n"
)
COURSE = (
    "ReservationName=course StartTime=2026-12-07T09:00:00 EndTime=2026-12-07T12:00:00 Duration=03:00:00 "
    "Nodes=node1 NodeCnt=1 CoreCnt=2 Features=(null) PartitionName=batch Flags=FLEX,WEEKLY "
    "TRES=cpu=2 Users=(null) "
    "Groups=(null) Accounts=laser,math Licenses=(null) State=INACTIVE BurstBuffer=(null) "
    "MaxStartDelay=(null)\n"
)
WEEKLY: dict[str, Any] = {
    "name": "course",
    "start": "2026-11-02T09:00",
    "end": "2026-11-02T12:00",
    "every": "week",
    "nodes": ["node1"],
    "partition": "batch",
    "accounts": ["math", "laser"],
    "flags": ["FLEX"],
}


def told(
    *entries: dict[str, Any],
    shown: str = "",
    before: tuple[dict[str, Any], ...] = (),
    nodes: dict[str, str] | None = None,
) -> list[str]:
    was = {entry["name"]: reservations.resolved(entry, nodes or {}) for entry in before}
    there = reservations.There(reservations.parse(shown), was, NOW, lambda one, other: one == other)
    steps = reservations.plan(entries, nodes or {}, there)
    return [" ".join(step.words) for step in steps]


def test_what_is_missing_is_made() -> None:
    (made,) = told(MAINTENANCE)
    assert made == (
        "create reservation ReservationName=maint StartTime=2026-12-24T08:00:00 EndTime=2026-12-24T12:00:00 "
        "Nodes=ALL Users=root Flags=MAINT"
    )
    (made,) = told(WEEKLY)
    assert made == (
        "create reservation ReservationName=course StartTime=2026-12-07T09:00:00 EndTime=2026-12-07T12:00:00 "
        "Nodes=node1 PartitionName=batch Accounts=math,laser Flags=FLEX,WEEKLY"
    )
    whole = {
        **MAINTENANCE,
        "partition": "gpu",
        "node_count": None,
        "tres": "gres/gpu=4",
        "licenses": ["a:1", "b:2"],
    }
    assert told(whole)[0].endswith(
        "Nodes=ALL PartitionName=gpu Users=root TRES=gres/gpu=4 Licenses=a:1,b:2 Flags=MAINT,PART_NODES"
    )
    assert "NodeCnt=2 Users=alice" in told({**MAINTENANCE, "node_count": 2, "users": ["alice"]})[0]


def test_what_is_as_declared_stays() -> None:
    assert told(MAINTENANCE, WEEKLY, shown=SHOWN + COURSE, before=(MAINTENANCE, WEEKLY)) == []
    assert told(MAINTENANCE, WEEKLY, shown=SHOWN + COURSE) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"start": "2026-12-24T09:00"}, "StartTime=2026-12-24T09:00:00 EndTime=2026-12-24T13:00:00"),
        ({"duration": "1-0"}, "EndTime=2026-12-25T08:00:00"),
        ({"duration": "90"}, "EndTime=2026-12-24T09:30:00"),
        ({"nodes": ["node1"]}, "Nodes=node1"),
        ({"users": ["root", "alice"]}, "Users=root,alice"),
        ({"accounts": ["math"]}, "Users= Accounts=math"),
        ({"flags": ["MAINT", "FLEX"]}, "Flags+=FLEX"),
        ({"flags": []}, "Flags-=MAINT"),
        ({"tres": "gres/gpu=1"}, "TRES=gres/gpu=1"),
    ],
)
def test_what_was_declared_otherwise_is_changed(change: dict[str, Any], expected: str) -> None:
    made = told({**MAINTENANCE, **change}, shown=SHOWN, before=(MAINTENANCE,))
    assert made == [f"update reservation ReservationName=maint {expected}"]


def test_what_an_operator_changed_is_put_back() -> None:
    assert told(MAINTENANCE, shown=SHOWN.replace("Users=root", "Users=eve"), before=(MAINTENANCE,)) == [
        "update reservation ReservationName=maint Users=root"
    ]
    named = {**MAINTENANCE, "nodes": ["node[1-3]"]}
    assert told(named, shown=SHOWN, before=(named,)) == []


def test_only_what_was_declared_is_taken_away() -> None:
    assert told(shown=SHOWN + COURSE, before=(WEEKLY,)) == ["delete ReservationName=course"]
    assert told(shown=SHOWN, before=(WEEKLY,)) == []


def test_what_is_over_is_not_made() -> None:
    assert told({**MAINTENANCE, "start": "2026-11-30T08:00"}) == []
    assert (
        "StartTime=now EndTime=2026-12-01T12:30:00" in told({**MAINTENANCE, "start": "2026-12-01T08:30"})[0]
    )
    late = SHOWN.replace("2026-12-24T08:00:00", "2026-12-01T11:00:00").replace(
        "2026-12-24T12:", "2026-12-01T14:"
    )
    assert told({**MAINTENANCE, "start": "2026-12-01T10:00"}, shown=late) == []


def test_what_slurm_cannot_change_is_made_anew() -> None:
    """Features are refused in every update, and no TRES cannot be told."""
    for before, now in (
        ({}, {"features": "h100"}),
        ({"tres": "gres/gpu=4"}, {}),
    ):
        deleted, made = told({**MAINTENANCE, **now}, shown=SHOWN, before=({**MAINTENANCE, **before},))
        assert deleted == "delete ReservationName=maint"
        assert made.startswith("create reservation ReservationName=maint StartTime=2026-12-24T08:00:00")
        assert ("Features=h100" in made) == bool(now)
    had = SHOWN.replace("Features=(null)", "Features=a100")
    (cleared,) = told(MAINTENANCE, shown=had, before=({**MAINTENANCE, "features": "a100"},))
    assert cleared == "update reservation ReservationName=maint Features="
    assert told({**MAINTENANCE, "features": "a100"}, shown=had) == []


def test_what_is_made_anew_is_deleted_right_before() -> None:
    first, other = {**MAINTENANCE, "name": "first"}, {**WEEKLY, "features": "h100"}
    anew = {**MAINTENANCE, "features": "h100"}
    commands = told(first, anew, other, shown=SHOWN + COURSE, before=(MAINTENANCE, WEEKLY))
    assert [" ".join(command.split()[:3]) for command in commands] == [
        "create reservation ReservationName=first",
        "delete ReservationName=maint",
        "create reservation ReservationName=maint",
        "delete ReservationName=course",
        "create reservation ReservationName=course",
    ]


class Slurm:
    """Runs scontrol where SHOWN and COURSE are, and refuses commands that have one of these words."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.ran: list[str] = []

    def run_command(self, command: list[str], **_: object) -> tuple[int, str, str]:
        if command[1] == "--oneliner":
            return 0, SHOWN + COURSE, ""
        words = " ".join(command[1:])
        self.ran.append(words)
        return (1, "", "no") if any(word in words for word in self.refused) else (0, "", "")

    def converge(self, monkeypatch: pytest.MonkeyPatch, *entries: dict[str, Any]) -> str:
        """Plays the module; what it fails with."""
        said: list[str] = []

        def fail_json(*, msg: str, **_: object) -> None:
            said.append(msg)
            raise SystemExit(1)

        fake = SimpleNamespace(
            params={"reservations": entries, "nodes": {}},
            check_mode=False,
            get_bin_path=lambda name, **_: name,
            run_command=self.run_command,
            fail_json=fail_json,
            exit_json=lambda **_: None,
        )
        monkeypatch.setattr(module, "AnsibleModule", lambda **_: fake)
        monkeypatch.setattr(module, "datetime", SimpleNamespace(now=lambda: NOW))
        try:
            module.main()
        except SystemExit:
            return said[0]
        return ""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(import_module("ansible.module_utils.given"), "DIRECTORY", tmp_path)
    return tmp_path / "slurm_reservations.json"


def remembered(*entries: dict[str, Any]) -> str:
    return json.dumps({entry["name"]: reservations.resolved(entry, {}) for entry in entries})


def test_what_slurm_refuses_to_make_anew_is_there_as_it_was(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {**MAINTENANCE, "tres": "gres/gpu=4", "users": ["alice"]}
    memory.write_text(remembered(before))
    slurm = Slurm("Users=eve", "Features=h100")
    said = slurm.converge(
        monkeypatch,
        {**MAINTENANCE, "name": "first", "users": ["eve"]},
        {**before, "tres": None, "duration": "60", "features": "h100"},
        {**MAINTENANCE, "name": "last"},
    )
    assert [" ".join(command.split()[:3]) for command in slurm.ran] == [
        "create reservation ReservationName=first",
        "delete ReservationName=maint",
        "create reservation ReservationName=maint",
        "create reservation ReservationName=maint",
        "create reservation ReservationName=last",
    ]
    assert slurm.ran[3] == (
        "create reservation ReservationName=maint StartTime=2026-12-24T08:00:00 EndTime=2026-12-24T12:00:00 "
        "Nodes=ALL Users=alice TRES=gres/gpu=4 Flags=IGNORE_JOBS,MAINT"
    )
    assert said == (
        "reservation first: Slurm refuses it: no; "
        "reservation maint: Slurm refuses it: no. It is there as it was"
    )
    known = json.loads(memory.read_text())
    assert known["maint"] == json.loads(remembered(before))["maint"], "the TRES that went are still to go"
    assert known.keys() == {"first", "maint", "last"}


def test_what_slurm_refuses_as_it_was_is_said_to_be_gone(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write_text(remembered(WEEKLY))
    said = Slurm("create").converge(monkeypatch, {**WEEKLY, "features": "h100"})
    assert said.endswith("refuses it: no. As it was Slurm refuses it, too: no. It is gone")


@pytest.mark.usefixtures("memory")
def test_one_that_nobody_declared_before_is_put_back_as_scontrol_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slurm = Slurm("Features=h100")
    slurm.converge(monkeypatch, {**WEEKLY, "features": "h100"})
    assert slurm.ran[-1] == (
        "create reservation ReservationName=course StartTime=2026-12-07T09:00:00 EndTime=2026-12-07T12:00:00 "
        "Nodes=node1 PartitionName=batch Accounts=laser,math Flags=FLEX,IGNORE_JOBS,WEEKLY"
    )


def test_licenses_that_slurm_does_not_free_are_still_to_be_freed(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write_text(remembered({**WEEKLY, "licenses": ["matlab:2"]}))
    assert Slurm("Licenses=").converge(monkeypatch, WEEKLY) == "reservation course: Slurm refuses it: no"
    assert json.loads(memory.read_text())["course"]["licenses"] == ["matlab:2"]


def test_licenses_that_are_declared_no_more_are_free() -> None:
    before = {**MAINTENANCE, "licenses": ["matlab:2"]}
    assert told(MAINTENANCE, shown=SHOWN, before=(before,)) == [
        "update reservation ReservationName=maint Licenses="
    ]


def test_what_comes_again_keeps_its_time_where_it_is_made_within_it() -> None:
    """Slurm counts its next times from when it began first."""
    within = {**WEEKLY, "start": "2026-11-03T11:00", "end": "2026-11-03T14:00"}
    (made,) = told(within)
    assert "StartTime=2026-12-08T11:00:00 EndTime=2026-12-08T14:00:00" in made
    shown = COURSE.replace("2026-12-07T09", "2026-12-08T11").replace("2026-12-07T12", "2026-12-08T14")
    assert told(within, shown=shown, before=(within,)) == []
    running = COURSE.replace("2026-12-07T09", "2026-12-01T11").replace("2026-12-07T12", "2026-12-01T14")
    assert told(within, shown=running, before=(within,)) == []


def test_nodes_that_slurm_does_not_know_yet_are_not_all_nodes() -> None:
    assert told({**MAINTENANCE, "groups": ["big"]}, nodes={"maint": ""}) == []
    assert told({**MAINTENANCE, "groups": ["big"]}) == []
    assert "Nodes=node[1-2]" in told({**MAINTENANCE, "groups": ["big"]}, nodes={"maint": "node[1-2]"})[0]


@pytest.mark.parametrize(
    ("every", "start", "expected"),
    [
        ("hour", "2026-11-30T00:15", "2026-12-01T11:15:00"),
        ("day", "2026-11-30T08:00", "2026-12-02T08:00:00"),
        ("day", "2026-12-24T08:00", "2026-12-24T08:00:00"),
        ("weekday", "2026-12-05T08:00", "2026-12-07T08:00:00"),
        ("weekend", "2026-11-29T08:00", "2026-12-05T08:00:00"),
        ("week", "2026-11-25T08:00", "2026-12-02T08:00:00"),
        ("week", "2026-12-01T11:30", "2026-12-01T11:30:00"),
    ],
)
def test_what_comes_again_is_made_for_the_next_time(every: str, start: str, expected: str) -> None:
    begins, ends = reservations.times({"start": start, "duration": "60", "every": every}, NOW)
    assert begins.isoformat() == expected
    assert (ends - begins).total_seconds() == 3600

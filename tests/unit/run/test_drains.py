"""The ledger of drains, on a Slurm that keeps one reason for each node."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from deploy.run import drains
from deploy.run.slurm_saves import packed, saved_nodes
from tests.unit.run.slurm import Slurm

MAINTENANCE = "deploy: maintenance"
HEALTH = "node_health: no room in /"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm(tmp_path)
    monkeypatch.setattr(drains, "_run", made.run)
    monkeypatch.setattr(drains, "LEDGER", tmp_path / "deploy/drains.json")
    return made


def _held(said: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(entry["node"], entry["who"], entry["why"]) for entry in said["held"]]


def test_a_drain_is_kept_and_shown_and_released(slurm: Slurm) -> None:
    said = drains.drain(["node1", "node2"], "alice", "firmware")
    assert _held(said) == [("node1", "alice", "firmware"), ("node2", "alice", "firmware")]
    assert slurm.reasons == {
        "node1": "deploy: firmware (alice)",
        "node2": "deploy: firmware (alice)",
        "node3": "",
    }
    assert drains.LEDGER.stat().st_mode & 0o777 == 0o600
    said = drains.resume(["node1"], "alice")
    assert (said["resumed"], slurm.reasons["node1"]) == (["node1"], "")
    assert _held(drains.listed()) == [("node2", "alice", "firmware")]


@pytest.mark.parametrize(
    "tail",
    [
        " Comment=a b",
        " ReservationName=maint",
        " InstanceId=i-1 InstanceType=large",
        " Comment=x Extra=y InstanceId=i-1 ReservationName=maint",
        " TLSCertTokenSet=yes",
        " Topology=switches:s1",
    ],
)
def test_a_reason_is_read_whatever_comes_behind_it(slurm: Slurm, tail: str) -> None:
    """As Slurm 26.05 has it for nodes of a reservation, of a cloud, with a topology of their own."""
    slurm.tails = dict.fromkeys(slurm.reasons, tail)
    slurm.reasons["node1"] = HEALTH
    assert ("node1", "root", HEALTH) in _held(drains.drain(["node1", "node2"], "alice", "firmware"))
    drains.resume(["node1", "node2"], "alice")
    assert (slurm.reasons["node1"], slurm.reasons["node2"]) == (HEALTH, "")


def test_a_node_that_slurm_does_not_know_drains_none(
    slurm: Slurm, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(drains.UnknownError, match="node9"):
        drains.drain(["node1", "node9"], "alice", "x")
    drains.main("resume", {"names": ["node9"], "who": "alice"})
    assert json.loads(capsys.readouterr().out.strip().removeprefix("deploy:")) == {"unknown": ["node9"]}
    assert (slurm.reasons["node1"], drains.LEDGER.exists()) == ("", False)


def test_five_reasons_on_three_nodes_are_released_one_by_one(slurm: Slurm) -> None:
    drains.drain(["node1", "node2"], "alice", "firmware")
    drains.drain(["node2", "node3"], "bob", "cabling")
    slurm.reasons["node1"] = HEALTH  # nobody's drain was there when it came: it is what Slurm shows
    slurm.reasons["node3"] = "mine (carol)"
    drains.drain(["node3"], "alice", "disk")
    assert slurm.reasons == {"node1": HEALTH, "node2": "deploy: cabling (bob)", "node3": "mine (carol)"}

    assert drains.resume(["node1", "node2", "node3"], "alice")["resumed"] == []
    assert slurm.reasons == {"node1": HEALTH, "node2": "deploy: cabling (bob)", "node3": "mine (carol)"}
    assert _held(drains.listed()) == [("node2", "bob", "cabling"), ("node3", "bob", "cabling")]

    assert drains.resume(["node2", "node3"], "bob")["resumed"] == ["node2"]
    assert slurm.reasons == {"node1": HEALTH, "node2": "", "node3": "mine (carol)"}
    assert drains.listed()["held"] == []


@pytest.mark.parametrize("reason", [MAINTENANCE, HEALTH])
def test_what_would_resume_by_itself_waits_until_the_drain_is_released(slurm: Slurm, reason: str) -> None:
    """Slurm shows the admin's reason, so that the health check and a reboot's end find none of theirs."""
    slurm.reasons["node1"] = reason
    drains.drain(["node1"], "alice", "disk")
    assert slurm.reasons["node1"] == "deploy: disk (alice)"
    assert [entry["why"] for entry in drains.listed()["held"]] == [reason, "disk"]
    assert drains.resume(["node1"], "alice")["resumed"] == []
    assert slurm.reasons["node1"] == reason
    assert drains.listed()["held"] == []


def test_the_last_of_two_drains_that_is_left_is_what_slurm_shows(slurm: Slurm) -> None:
    drains.drain(["node1"], "alice", "disk")
    drains.drain(["node1"], "bob", "cabling")
    assert slurm.reasons["node1"] == "deploy: cabling (bob)"
    drains.resume(["node1"], "bob")
    assert slurm.reasons["node1"] == "deploy: disk (alice)"


def test_the_same_drain_twice_is_one(slurm: Slurm) -> None:
    first = drains.drain(["node1"], "alice", "disk")["held"]
    assert drains.drain(["node1"], "alice", "disk")["held"] == first
    assert slurm.reasons["node1"] == "deploy: disk (alice)"


def test_who_resumes_by_hand_released_all(slurm: Slurm) -> None:
    drains.drain(["node1"], "alice", "disk")
    slurm.reasons["node1"] = ""
    assert drains.listed()["held"] == []
    assert drains.resume(["node1"], "alice")["released"] == []
    assert json.loads(drains.LEDGER.read_text()) == []


def test_a_controller_that_falls_silent_between_two_nodes_loses_no_entry(slurm: Slurm) -> None:
    slurm.fails_at = "node2"
    with pytest.raises(
        drains.SilentError, match=re.escape("scontrol update NodeName=node2: slurm_update error")
    ):
        drains.drain(["node1", "node2"], "alice", "disk")
    slurm.fails_at = ""
    assert _held(drains.listed()) == [("node1", "alice", "disk")]
    assert drains.resume(["node1"], "alice")["resumed"] == ["node1"]


@pytest.mark.parametrize("asked", [3, 4, 5])
def test_what_is_answered_is_saved(slurm: Slurm, monkeypatch: pytest.MonkeyPatch, asked: int) -> None:
    monkeypatch.setattr(drains, "_PAUSE", 0)
    slurm.saves_after = asked
    drains.drain(["node1"], "alice", "firmware")
    slurm.die()
    assert _held(drains.listed()) == [("node1", "alice", "firmware")]
    slurm.saves_after = asked
    drains.resume(["node1"], "alice")
    assert packed("deploy: firmware (alice)") not in (slurm.state / "node_state").read_bytes()
    slurm.saves_after = asked
    drains.plan(["node2"], "alice", "disk", 3600)
    (name,) = slurm.reservations
    assert packed(name) in (slurm.state / "resv_state").read_bytes()
    slurm.saves_after = asked
    drains.resume(["node2"], "alice")
    assert packed(name) not in (slurm.state / "resv_state").read_bytes()


def test_slurm_is_told_again_when_it_could_not_save(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drains, "_TO_SAVE", 0)
    slurm.saves_after = 10**6
    with pytest.raises(drains.UnsavedError):
        drains.drain(["node1"], "alice", "firmware")
    with pytest.raises(drains.UnsavedError):
        drains.plan(["node2"], "alice", "disk", 3600)
    monkeypatch.setattr(drains, "_TO_SAVE", 1)
    slurm.saves_when_told = True
    drains.drain(["node1"], "alice", "firmware")
    slurm.saves_after = 10**6
    drains.plan(["node2"], "alice", "disk", 3600)
    assert slurm.reasons["node1"] == "deploy: firmware (alice)"
    assert [reserved["Nodes"] for reserved in slurm.reservations.values()] == ["node2"]


def test_the_state_is_read_as_its_owner(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[int] = []
    monkeypatch.setattr(os, "seteuid", became.append)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert not saved_nodes(slurm.state, {"fan": 1})
    assert became == [slurm.state.stat().st_uid, 4711]


def test_who_cannot_save_says_so_again_and_again(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(drains, "_TO_SAVE", 0)
    slurm.saves_after = 100
    for _ in range(2):
        drains.main("drain", {"names": ["node1"], "who": "alice", "why": "firmware"})
        assert json.loads(capsys.readouterr().out.partition("deploy:")[2]) == {"unsaved": str(slurm.state)}
    slurm.saves_after = 0
    assert _held(drains.drain(["node1"], "alice", "firmware")) == [("node1", "alice", "firmware")]


@pytest.mark.parametrize("verb", ["listed", "drain"])
def test_a_silent_controller_is_an_answer(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    assert slurm
    monkeypatch.setattr(drains, "_run", lambda *_: ("connection refused", False))
    drains.main(verb, {"names": ["node1"], "who": "alice", "why": "x"} if verb == "drain" else {})
    answer = json.loads(capsys.readouterr().out.strip().removeprefix("deploy:"))
    assert answer == {"trouble": "scontrol --oneliner show: connection refused"}


def test_a_resume_for_a_reason_releases_no_other_drain_of_its_maker(slurm: Slurm) -> None:
    drains.drain(["node1"], "alice", "replace DIMM")
    drains.drain(["node1"], "alice", "reboot: kernel")
    said = drains.resume(["node1"], "alice", "reboot: kernel")
    assert ([entry["why"] for entry in said["released"]], said["resumed"]) == (["reboot: kernel"], [])
    assert slurm.reasons["node1"] == "deploy: replace DIMM (alice)"


def test_the_partitions_of_nodes_are_told(slurm: Slurm) -> None:
    slurm.partitions = {"node1": "all,gpu", "node2": "all"}
    nodes = drains.listed()["nodes"]
    assert [nodes[name]["partitions"] for name in ("node1", "node2", "node3")] == [
        ["all", "gpu"],
        ["all"],
        [],
    ]


@pytest.mark.parametrize("added", [" : Not responding", " : Low RealMemory : Not responding"])
def test_what_slurm_adds_to_a_reason_changes_nothing_of_whose_it_is(slurm: Slurm, added: str) -> None:
    drains.drain(["node1"], "alice", "fan")
    slurm.reasons["node1"] += added
    drains.drain(["node1"], "alice", "reboot")
    assert (_held(drains.listed()), slurm.reasons["node1"]) == (
        [("node1", "alice", "fan"), ("node1", "alice", "reboot")],
        "deploy: reboot (alice)",
    )
    slurm.reasons["node1"] += added
    assert drains.resume(["node1"], "alice")["resumed"] == ["node1"]


def test_a_reboot_of_deploys_waits_as_it_was_without_what_slurm_added(slurm: Slurm) -> None:
    slurm.reasons["node1"] = f"{MAINTENANCE} : Not responding"
    drains.drain(["node1"], "alice", "fan")
    assert _held(drains.listed()) == [("node1", "root", MAINTENANCE), ("node1", "alice", "fan")]
    drains.resume(["node1"], "alice")
    assert slurm.reasons["node1"] == MAINTENANCE


def _reserved(slurm: Slurm) -> list[str]:
    return [made["Nodes"] for made in slurm.reservations.values()]


def test_a_plan_reserves_and_its_drain_takes_over(slurm: Slurm) -> None:
    said = drains.plan(["node1", "node2"], "alice", "firmware", 7200)
    (planned,) = said["planned"]
    assert (planned["who"], planned["why"], planned["nodes"]) == ("alice", "firmware", ["node1", "node2"])
    assert 7100 < planned["left"] <= 7200
    assert ("Flags", "MAINT,IGNORE_JOBS") in slurm.reservations[planned["name"]].items()
    drains.plan(["node1", "node2"], "alice", "firmware", 60)
    assert (len(slurm.reservations), _held(drains.listed())) == (1, [])
    drains.drain(["node1"], "alice", "firmware")
    assert _reserved(slurm) == ["node2"]
    drains.drain(["node2"], "alice", "firmware")
    assert (_reserved(slurm), len(_held(drains.listed()))) == ([], 2)


def test_a_resume_releases_ones_own_reservations(slurm: Slurm) -> None:
    drains.plan(["node1", "node2"], "alice", "firmware", 7200)
    drains.plan(["node1"], "bob", "cables", 7200)
    slurm.reservations["course"] = {"ReservationName": "course", "Nodes": "node1", "StartTime": "x"}
    said = drains.resume(["node1", "node3"], "alice")
    assert [(entry["node"], entry["why"]) for entry in said["released"]] == [("node1", "firmware")]
    assert _reserved(slurm) == ["node2", "node1", "node1"]
    assert drains.resume(["node2"], "alice", "something else")["released"] == []
    assert drains.resume(["node2"], "alice")["resumed"] == []
    assert _reserved(slurm) == ["node1", "node1"]


@pytest.mark.parametrize(
    ("jobs", "seconds"),
    [
        ("", 0),
        ("10:00|5:30\n1:00:00|0:10\n", 330),
        ("1-00:00:00|1-02:00:01\n", 93601),
        ("UNLIMITED|UNLIMITED\n", None),
        ("10:00|INVALID\n", None),
    ],
)
def test_a_node_is_idle_when_the_last_of_its_jobs_must_end(
    slurm: Slurm, jobs: str, seconds: int | None
) -> None:
    slurm.jobs = jobs
    said = drains.plan(["node1"], "alice", "firmware", None)
    if seconds is None:
        assert (said.get("endless"), slurm.reservations) == (True, {})
    else:
        assert seconds - 5 <= said["planned"][0]["left"] <= seconds


def test_only_jobs_that_were_agreed_on_end(slurm: Slurm) -> None:
    slurm.jobs = "17\n18_3\n19\n"
    assert drains.end(["node1"], ["17", "18_3", "20"]) == {"requeued": ["17", "18_3"], "cancelled": []}
    slurm.requeueable = False
    assert drains.end(["node1"], ["19"]) == {"requeued": [], "cancelled": ["19"]}
    assert slurm.ended[-1] == ("scancel", "19")


def test_what_is_held_instead_is_shown_where_the_first_reason_was(slurm: Slurm) -> None:
    drains.drain(["node1", "node2"], "alice", "reboot")
    drains.drain(["node2"], "bob", "fan")
    slurm.reasons["node3"] = "bad disk"
    drains.drain(["node3"], "alice", "reboot")
    drains.hold(["node1", "node2", "node3"], "alice", "reboot", "reboot: no answer")
    assert slurm.reasons == {
        "node1": "deploy: reboot: no answer (alice)",
        "node2": "deploy: fan (bob)",
        "node3": "bad disk",
    }
    said = drains.resume(["node1", "node2", "node3"], "alice", "reboot")
    assert (said["resumed"], _held(said)) == (["node1"], [("node2", "bob", "fan")])


def test_what_is_held_for_a_reason_is_drained_for_it(slurm: Slurm) -> None:
    drains.drain(["node1"], "alice", "repair")
    drains.hold(["node1"], "alice", "repair", "repair: no GPU")
    said = drains.drain(["node1"], "alice", "repair")
    assert (_held(said), slurm.reasons["node1"]) == (
        [("node1", "alice", "repair: no GPU")],
        "deploy: repair: no GPU (alice)",
    )
    assert drains.resume(["node1"], "alice", "repair")["resumed"] == ["node1"]


def test_what_is_lent_is_reserved_for_one_user_until_the_drain_takes_over(slurm: Slurm) -> None:
    drains.drain(["node1", "node2", "node3"], "alice", "repair")
    drains.drain(["node2"], "bob", "fan")
    slurm.reasons["node3"] = "by hand"
    said = drains.lend(["node1", "node2", "node3"], "alice", "repair", "carol")
    assert (said["lent"], [*slurm.reservations]) == (["node1"], [said["reservation"]])
    made = slurm.reservations[said["reservation"]]
    assert (made["Users"], made["Flags"], made["Nodes"]) == ("carol", "MAINT,IGNORE_JOBS", "node1")
    assert slurm.reasons == {"node1": "", "node2": "deploy: fan (bob)", "node3": "by hand"}
    (planned,) = drains.listed()["planned"]
    assert (planned["why"], planned["user"], planned["left"] <= 0) == ("repair", "carol", True)
    # A job that is left in it would keep it there.
    slurm.keeps = 2
    drains.drain(["node1"], "alice", "repair")
    assert (slurm.reservations, slurm.reasons["node1"]) == ({}, "deploy: repair (alice)")
    assert slurm.ended == [("scancel", f"--reservation={said['reservation']}")] * 2


def test_nothing_is_lent_that_is_not_drained_for_that(slurm: Slurm) -> None:
    drains.drain(["node1"], "alice", "firmware")
    said = drains.lend(["node1", "node2"], "alice", "repair", "carol")
    assert (said["lent"], said["reservation"], slurm.reservations) == ([], "", {})


@pytest.mark.parametrize(
    ("reason", "is_lent"),
    [("node_health: x", True), ("Kill task failed", True), ("Duplicate jobid", True), ("x", False)],
)
def test_what_drained_a_node_for_a_fault_lets_go_of_one_that_is_well(
    slurm: Slurm,
    reason: str,
    is_lent: bool,  # noqa: FBT001
) -> None:
    slurm.reasons["node1"] = reason
    drains.drain(["node1"], "alice", "repair")
    assert drains.lend(["node1"], "alice", "repair", "carol")["lent"] == ["node1"] * is_lent
    assert bool(slurm.reasons["node1"]) is not is_lent

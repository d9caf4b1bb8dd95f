"""The ledger of drains, on a Slurm that keeps one reason for each node."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from deploy.run import drains
from tests.unit.run.slurm import Slurm

MAINTENANCE = "deploy: maintenance"
HEALTH = "node_health: no room in /"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    made = Slurm()
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

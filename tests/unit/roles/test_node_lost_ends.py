"""A batch job whose script has ended, and that slurmctld takes for running, is started anew; no other is."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_health

BATCH, EXTERN, FIRST = 4294967291, 4294967292, 0
RUNNING = (
    "JobState=RUNNING Reason=None Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 NodeList=node1 BatchHost=node1"
)


@pytest.fixture(scope="module")
def module() -> Any:  # noqa: ANN401 - a module that is loaded by its path
    return load_health("lost_ends")


class Node:
    """The steps of a node, and what Slurm says and was told."""

    def __init__(self, module: Any, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:  # noqa: ANN401
        self.module, self.spool, self.record = module, place / "spool", place / "record"
        self.spool.mkdir()
        self.jobs = {"12": RUNNING}
        self.now, self.asked = 1000.0, 0
        self.told: list[str] = []
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(module.scontrol.__globals__["subprocess"], "run", self._run)

    def _run(self, command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if command[2:4] == ["show", "job"]:
            self.asked += 1
            shown = self.jobs.get(command[4])
            said = f"JobId={command[4]} JobName=a {shown} WorkDir=/\n"
            return subprocess.CompletedProcess(command, int(shown is None), said, "Invalid job id specified")
        self.told.append(" ".join(command))
        return subprocess.CompletedProcess(command, 0, "", "")

    def step(self, job: int, *steps: int, began: int = 0) -> None:
        for step in steps:
            path = self.spool / f"node1_{job}.{step}"
            path.touch()
            os.utime(path, (began, began))

    def look(self, after: float = 0.0) -> str:
        self.now += after
        return str(self.module.take_back("node1", self.spool, self.record))


@pytest.fixture
def node(module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Node:  # noqa: ANN401
    return Node(module, monkeypatch, tmp_path)


def test_it_is_requeued_when_it_was_so_for_a_while(node: Node) -> None:
    node.step(12, EXTERN)
    assert node.look() == ""
    assert node.look(299) == ""
    assert node.asked == 0
    assert node.look(1) == "requeued job 12: its script has ended here, and slurmctld lost that"
    assert node.told == ["scontrol requeue 12"]
    assert node.look(60) == ""
    assert node.told == ["scontrol requeue 12"]


def test_one_that_is_not_to_be_requeued_is_cancelled(node: Node) -> None:
    node.step(12, EXTERN)
    node.jobs["12"] = RUNNING.replace("Requeue=1", "Requeue=0")
    node.look()
    assert node.look(300).startswith("cancelled job 12: ")
    assert node.told == ["scancel 12"]


def test_a_script_that_runs_is_let_run(node: Node) -> None:
    node.step(12, EXTERN, BATCH, FIRST)
    node.look()
    node.look(9000)
    assert node.asked == 0


def test_one_that_starts_anew_has_its_time(node: Node) -> None:
    node.step(12, EXTERN)
    node.look()
    node.step(12, EXTERN, began=77)
    node.look(9000)
    assert node.told == []
    node.look(300)
    assert node.told == ["scontrol requeue 12"]


def test_a_script_that_began_late_is_not_held_to_before(node: Node) -> None:
    node.step(12, EXTERN)
    node.look()
    node.step(12, BATCH)
    node.look(299)
    (node.spool / f"node1_12.{BATCH}").unlink()
    node.look(2)
    assert node.told == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BatchHost=node1", "BatchHost=node2"),
        (" BatchHost=node1", ""),
        ("BatchFlag=1", "BatchFlag=0"),
        ("JobState=RUNNING", "JobState=COMPLETING"),
        ("JobState=RUNNING", "JobState=SUSPENDED"),
        (RUNNING, None),
    ],
)
def test_other_jobs_are_asked_for_once(node: Node, old: str, new: str | None) -> None:
    node.step(12, EXTERN)
    node.jobs = {} if new is None else {"12": RUNNING.replace(old, new)}
    node.look()
    assert node.look(300) == node.look(300) == ""
    assert node.asked == 1
    assert node.told == []


def test_a_node_without_jobs_writes_nothing(node: Node) -> None:
    node.look()
    assert not node.record.exists()


def test_slurm_that_does_not_answer_is_asked_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.step(12, EXTERN)
    node.look()
    with monkeypatch.context() as away:

        def refuses(*_: str) -> str:
            raise node.module.SlurmError

        away.setattr(node.module, "_settle", refuses)
        with pytest.raises(node.module.SlurmError):
            node.look(300)
    assert "requeued job 12" in node.look()

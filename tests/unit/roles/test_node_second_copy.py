"""Slurm's own drain and hold of a job that it started twice are taken back, and nothing else."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import ROOT, load_module

PLACE = "roles/node_health/files/usr/local/lib/node_health"
OLD = "[2026-11-28T10:00:00.000] error: Job 7 already running, do not launch second copy\n"
NEW = "[2026-11-28T11:00:00.000] error: Job 12 already running, do not launch second copy\n"
OTHER = "[2026-11-28T11:00:01.000] [12.batch] done with step\n"
DRAINED = "State=IDLE+DRAIN Reason=Duplicate jobid [slurm@2026-11-28T11:00:00]"
HELD = "JobState=PENDING Reason=launch_failed_requeued_held Dependency=(null)"


@pytest.fixture(scope="module")
def module() -> Any:  # noqa: ANN401 - a module that is loaded by its path
    sys.path[:0] = [str(ROOT / PLACE), str(ROOT / "playbooks/module_utils")]
    return load_module(f"{PLACE}/second_copy.py")


class Node:
    """A node, its slurmd's log, and what Slurm says and was told."""

    def __init__(self, module: Any, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:  # noqa: ANN401
        self.module = module
        self.log, self.handled = place / "slurmd.log", place / "handled"
        self.state, self.jobs = DRAINED, {"12": HELD}
        self.told: list[str] = []
        monkeypatch.setattr(module.time, "sleep", lambda _: None)
        monkeypatch.setattr(module.read_node.__globals__["subprocess"], "run", self._run)

    def _run(self, command: list[str], **_: object) -> Any:  # noqa: ANN401
        words = command[1:]
        if words[1:3] == ["show", "node"]:
            return _said(f"NodeName=node1 Arch=x86_64 {self.state}\n")
        if words[1:3] == ["show", "job"]:
            return _said(f"JobId={words[3]} {self.jobs[words[3]]}\n" if words[3] in self.jobs else None)
        self.told.append(" ".join(words))
        return _said("")

    def look(self) -> str:
        return str(self.module.take_back("node1", self.log, self.handled))


class _said:  # noqa: N801 - as subprocess.CompletedProcess
    def __init__(self, text: str | None) -> None:
        self.returncode = int(text is None)
        self.stdout, self.stderr = text or "", "Invalid job id specified"


@pytest.fixture
def node(module: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Node:  # noqa: ANN401
    return Node(module, monkeypatch, tmp_path)


def test_the_node_goes_on_and_the_job_is_released_once(node: Node) -> None:
    node.log.write_text(OTHER + NEW + OTHER)
    said = node.look()
    assert node.told == ["update NodeName=node1 State=RESUME", "release 12"]
    assert (
        said == 'resumed: Slurm drained it for "Duplicate jobid"; released job 12, which Slurm held for that'
    )
    assert node.look() == ""
    assert len(node.told) == 2


def test_slurm_is_not_asked_where_nothing_was_refused(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node.module, "read_node", lambda _: pytest.fail("it is asked"))
    assert node.look() == "", "there is no log"
    node.log.write_text(OTHER)
    assert node.look() == ""


def test_what_is_refused_once_more_is_taken_back_once_more(node: Node) -> None:
    node.log.write_text(OLD)
    node.look()
    node.told.clear()
    node.log.write_text(OLD + OTHER + NEW)
    assert "job 12" in node.look()
    assert node.told[-1] == "release 12"


def test_a_log_that_began_anew_is_read_from_its_beginning(node: Node) -> None:
    node.log.write_text(OLD)
    node.look()
    node.log.write_text(NEW)
    assert "job 12" in node.look()


def test_later_releases_of_slurm_name_jobs_otherwise(node: Node) -> None:
    node.log.write_text(NEW.replace("Job 12", "JobId=12"))
    assert "job 12" in node.look()


@pytest.mark.parametrize(
    "state",
    [
        "State=IDLE",
        "State=IDLE+DRAIN Reason=Duplicate jobid : fan [alice@2026-11-28T11:00:00]",
        "State=IDLE+DRAIN Reason=Prolog error [slurm@2026-11-28T11:00:00]",
        "State=IDLE Reason=Duplicate jobid [slurm@2026-11-28T11:00:00]",
    ],
)
def test_a_node_with_another_reason_is_left_alone(node: Node, state: str) -> None:
    node.log.write_text(NEW)
    node.state = state
    node.look()
    assert node.told == ["release 12"]


@pytest.mark.parametrize(
    "job",
    [
        "JobState=RUNNING Reason=None Dependency=(null)",
        "JobState=PENDING Reason=JobHeldUser Dependency=(null)",
        "JobState=PENDING Reason=Resources Dependency=(null)",
        None,
    ],
)
def test_a_job_that_somebody_else_holds_is_left_alone(node: Node, job: str | None) -> None:
    node.log.write_text(NEW)
    node.jobs = {"12": job} if job else {}
    node.look()
    assert node.told == ["update NodeName=node1 State=RESUME"]


def test_where_slurm_does_not_answer_it_is_for_the_next_look(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.log.write_text(NEW)
    with monkeypatch.context() as away:
        away.setattr(node.module, "read_node", _no_answer(node.module))
        with pytest.raises(node.module.SlurmError):
            node.look()
    assert "job 12" in node.look()


def _no_answer(module: Any) -> Any:  # noqa: ANN401
    def asked(_: str) -> None:
        raise module.SlurmError

    return asked

"""What Slurm does because a start was refused that it had no memory of is taken back, and nothing else."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_health

OLD = "[2026-11-28T10:00:00.000] error: Job 7 already running, do not launch second copy\n"
NEW = "[2026-11-28T11:00:00.000] error: Job 12 already running, do not launch second copy\n"
OTHER = "[2026-11-28T11:00:01.000] [12.batch] done with step\n"
DRAINED = "State=IDLE+DRAIN Reason=Duplicate jobid [slurm@2026-11-28T11:00:00]"
NEVER_SENT = (
    "[2026-11-28T11:00:00.000] error: Waiting for JobId=12 REQUEST_LAUNCH_PROLOG notification failed,"
    " giving up after 20 sec\n"
)
MET = (
    "[2026-11-28T11:00:00.000] [12.batch] error: couldn't open `/var/spool/slurmd/job00012/slurm_script':"
    " File exists\n"
    "[2026-11-28T11:00:00.000] [12.batch] error: batch script setup failed for job 12 on node1: File exists\n"
)
KILLED = "[2026-11-28T11:00:00.000] error: Job 12 already killed, do not launch batch job\n"
PROLOG_FAILED = "[2026-11-28T10:59:50.000] error: [job 11] prolog failed status=1:0\n"
PROLOG_ERROR = "State=IDLE+DRAIN Reason=Prolog error [slurm@2026-11-28T11:00:02]"
FAILED = (
    "JobState=FAILED Reason=None Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=1:0"
    " RunTime=00:00:01 StartTime=2026-11-28T10:59:59 EndTime=2026-11-28T11:00:00 Deadline=N/A"
)
HELD = "JobState=PENDING Reason=launch_failed_requeued_held Dependency=(null)"


@pytest.fixture(scope="module")
def module() -> Any:  # noqa: ANN401 - a module that is loaded by its path
    return load_health("refused_starts")


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


def test_a_start_that_was_never_sent_in_full(node: Node) -> None:
    node.log.write_text(NEVER_SENT)
    node.state = PROLOG_ERROR
    assert node.look().startswith('resumed: Slurm drained it for "Prolog error"; released job 12')
    assert node.told == ["update NodeName=node1 State=RESUME", "release 12"]


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        (PROLOG_FAILED + NEVER_SENT, PROLOG_ERROR),
        (PROLOG_FAILED.replace("[job 11]", "JobId=11") + NEVER_SENT, PROLOG_ERROR),
        (NEVER_SENT + PROLOG_FAILED, PROLOG_ERROR),
        (NEVER_SENT, PROLOG_ERROR.replace("T11:00:02", "T10:58:00")),
        (NEVER_SENT, PROLOG_ERROR.replace("Prolog error", "Prolog error : scratch: failed")),
        (NEW, PROLOG_ERROR),
    ],
    ids=["before", "26.05", "after", "other-time", "other-words", "other-refusal"],
)
def test_a_prolog_that_failed_keeps_its_drain(node: Node, lines: str, state: str) -> None:
    node.log.write_text(lines)
    node.state = state
    node.look()
    assert node.told == ["release 12"]


def test_a_prolog_that_failed_long_before_is_another_one(node: Node) -> None:
    node.log.write_text(PROLOG_FAILED.replace("T10:59", "T09:59") + NEVER_SENT)
    node.state = PROLOG_ERROR
    node.look()
    assert node.told[0] == "update NodeName=node1 State=RESUME"


def test_two_starts_that_met(node: Node) -> None:
    node.log.write_text(MET)
    node.state = "State=IDLE"
    assert node.look() == "released job 12, which Slurm held for that"


@pytest.mark.parametrize("state", ["FAILED", "COMPLETING"])
def test_a_job_that_slurm_took_for_failed_is_requeued(node: Node, state: str) -> None:
    node.log.write_text(KILLED)
    node.state, node.jobs = "State=IDLE", {"12": FAILED.replace("FAILED", state)}
    assert node.look() == "requeued job 12, which Slurm took for failed for that"
    assert node.told == ["requeue 12"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FAILED", "CANCELLED"),
        ("FAILED", "COMPLETED"),
        ("Requeue=1", "Requeue=0"),
        ("ExitCode=1:0", "ExitCode=2:0"),
        ("RunTime=00:00:01", "RunTime=00:00:12"),
        ("EndTime=2026-11-28T11:00:00", "EndTime=2026-11-28T11:02:00"),
        ("EndTime=2026-11-28T11:00:00", "EndTime=Unknown"),
    ],
)
def test_a_job_that_ended_otherwise_is_not(node: Node, old: str, new: str) -> None:
    node.log.write_text(KILLED)
    node.state, node.jobs = "State=IDLE", {"12": FAILED.replace(old, new)}
    assert node.look() == ""
    assert node.told == []


@pytest.mark.parametrize(
    "line",
    [
        KILLED.replace("error: ", ""),
        "[2026-11-28T11:00:00.000] [9.batch] error: couldn't chdir to `/tmp/error: " + KILLED[35:],
    ],
    ids=["no-error", "directory"],
)
def test_what_only_looks_like_a_refusal_is_none(node: Node, line: str) -> None:
    node.log.write_text(line)
    node.jobs = {"12": FAILED}
    assert node.look() == ""
    assert node.told == []


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
    for line in (NEW, MET, KILLED, NEVER_SENT):
        for name in ("JobId=12", "JobId=12 SLUID=sQ4"):
            node.log.write_text(
                line.replace("Job 12", name).replace("job 12", name).replace("JobId=12 R", f"{name} R")
            )
            node.handled.unlink(missing_ok=True)
            assert "job 12" in node.look(), line


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

"""Rows of jobs that slurmctld does not know are ended when they were found on the day before, too."""

from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.roles.loading import load_program

OLD = "12|2026-11-28T10:00:00|RUNNING|2026-11-28T10:00:02"
NEW = "15|2026-11-29T11:00:00|PENDING|Unknown"
NOTE = "NOTE: Runaway jobs are jobs that don't exist in the controller but have a start time"
ASKED = (
    "Would you like to fix these runaway jobs?\n(This will set the end time ...)\n (N/y): Changes Discarded"
)
NONE = "Runaway Jobs: No runaway jobs found on cluster lab"


@pytest.fixture(scope="module")
def loaded() -> ModuleType:
    return load_program("roles/slurmctld/files/usr/local/lib/slurmctld/runaways.py")


class Accounting:
    """What Slurm finds, and how often it ended all of that."""

    def __init__(self, loaded: ModuleType, patch: pytest.MonkeyPatch, place: Path) -> None:
        self.module, self.record = loaded, place / "found"
        self.rows: list[str] = []
        self.queue, self.ended = 0, 0
        self.leader, self.fails = "ctl1", ""
        patch.setattr(loaded, "run", self._run)

    def _run(self, *command: str, told: str = "") -> tuple[int, str]:
        if command == ("scontrol", "ping"):
            return 0, f"Slurmctld(primary) at {self.leader} is UP\nSlurmctld(backup) at ctl9 is UP"
        if command[0] == self.fails:
            return 1, "Connection refused"
        if command[0] == "sdiag":
            return 0, f"Agent queue size:   7\nDBD Agent queue size: {self.queue}\nJobs: 3"
        if "--immediate" in command:
            self.ended += 1
            return 0, ""
        assert told == "n\n"
        return 0, "\n".join([NOTE, *self.rows, ASKED]) if self.rows else NONE

    def look(self, *rows: str) -> str:
        self.rows = [*rows]
        return str(self.module.look(self.record))


@pytest.fixture
def accounting(loaded: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Accounting:
    return Accounting(loaded, monkeypatch, tmp_path)


def test_what_was_found_the_day_before_is_ended(accounting: Accounting) -> None:
    assert accounting.look(OLD).startswith("rows of jobs that slurmctld does not know, ended tomorrow")
    assert accounting.ended == 0
    said = accounting.look(OLD)
    assert said == f"ended rows of jobs that slurmctld has not known for a day: {OLD}"
    assert accounting.ended == 1
    assert accounting.look() == ""


def test_nothing_is_ended_beside_what_is_new(accounting: Accounting) -> None:
    accounting.look(OLD)
    assert NEW in accounting.look(OLD, NEW)
    assert accounting.ended == 0
    accounting.look(OLD, NEW)
    assert accounting.ended == 1


@pytest.mark.parametrize(
    "again", [OLD.replace("T10:00:02", "T12:00:00"), OLD.replace("11-28T10:00:00", "11-29T01:00:00")]
)
def test_a_job_that_went_on_meanwhile_is_another_one(accounting: Accounting, again: str) -> None:
    accounting.look(OLD)
    accounting.look(again)
    assert accounting.ended == 0


def test_what_is_known_again_is_forgotten(accounting: Accounting) -> None:
    accounting.look(OLD)
    assert accounting.look() == ""
    accounting.look(OLD)
    assert accounting.ended == 0


def test_nothing_is_looked_at_while_slurmdbd_lacks_something(accounting: Accounting) -> None:
    accounting.look(OLD)
    accounting.queue = 1
    assert "has not been told all" in accounting.look(OLD)
    accounting.queue = 10
    assert "has not been told all" in accounting.look(OLD)
    assert accounting.ended == 0


@pytest.mark.parametrize("program", ["sdiag", "sacctmgr"])
def test_slurm_that_does_not_answer_is_said(
    accounting: Accounting, capsys: pytest.CaptureFixture[str], program: str
) -> None:
    accounting.fails = program
    accounting.module.main("ctl1")
    assert capsys.readouterr().err == "Slurm could not be asked: Connection refused\n"


def test_a_controller_that_stands_by_does_nothing(
    accounting: Accounting, capsys: pytest.CaptureFixture[str]
) -> None:
    accounting.leader = "ctl2"
    accounting.fails = "sdiag"
    accounting.module.main("ctl1")
    assert capsys.readouterr().err == ""

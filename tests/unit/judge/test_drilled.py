"""What a drill finds, by what a manifest says and what Slurm has."""

from dataclasses import replace
from typing import Any

import pytest

from deploy.judge.drilled import Restored, Verdict, compared

DAY = 86400.0
ROWS = [["root", "", "", 200_000], ["research", "", "1", 200_000], ["research", "alice", "7", 200_000]]
MANIFEST: dict[str, Any] = {
    "database": {"name": "slurm_acct_db", "tables": 34, "jobs": 4, "associations": 7},
    "queue": {"running": [2], "waiting": [3, 4], "next_job_id": 5},
    "fair_share": {"associations": ROWS, "cpus": 2},
}
RESTORED = Restored(
    {"tables": 34, "jobs": 4, "associations": 7},
    {1: "COMPLETED", 2: "NODE_FAIL", 3: "PENDING", 4: "PENDING"},
    5,
    [("root", "", "", 200_000), ("research", "", "1", 200_000), ("research", "alice", "7", 200_000)],
    7 * DAY,
)
QUIET = {**MANIFEST, "queue": {"running": [], "waiting": [], "next_job_id": 5}}


def found(manifest: dict[str, Any], restored: Restored, age: float = 0.0) -> dict[str, Verdict]:
    """What is not the same."""
    rows = compared(manifest, restored, age)
    return {row.what: row.verdict for row in rows if row.verdict is not Verdict.SAME}


def test_all_is_the_same() -> None:
    rows = compared(MANIFEST, RESTORED, 60)
    assert found(MANIFEST, RESTORED) == {}
    assert [row.what for row in rows] == [
        "tables of the database",
        "rows of jobs in the accounting",
        "rows of associations in the accounting",
        "jobs on nodes",
        "jobs that wait",
        "id of the next job, or a later one",
        "associations that slurmctld knows",
        "their shares",
        "usage for fair share, in CPU seconds",
    ]


@pytest.mark.parametrize("what", ["tables", "jobs", "associations"])
def test_a_row_that_is_missing(what: str) -> None:
    lacking = replace(RESTORED, database={**RESTORED.database, what: 3})
    assert [*found(MANIFEST, lacking).values()] == [Verdict.DIFFERENT]


def test_a_job_that_is_missing_is_named() -> None:
    lacking = replace(RESTORED, jobs={2: "RUNNING", 4: "PENDING"})
    (row,) = (row for row in compared(MANIFEST, lacking, 0) if row.verdict is Verdict.DIFFERENT)
    assert (row.what, row.backup, row.found, row.note) == ("jobs that wait", "2", "1", "not there: 3")


def test_a_job_of_the_last_seconds_is_noted() -> None:
    unsaved = replace(RESTORED, jobs={2: "RUNNING", 3: "PENDING"})
    assert found(MANIFEST, unsaved) == {}
    assert any("had saved by then: 4" in row.note for row in compared(MANIFEST, unsaved, 0))


def test_a_state_without_any_job_is_not_that_of_a_queue() -> None:
    assert {*found(MANIFEST, replace(RESTORED, jobs={}))} == {"jobs on nodes", "jobs that wait"}


def test_ids_are_not_given_again() -> None:
    assert {*found(MANIFEST, replace(RESTORED, next_job_id=4))} == {"id of the next job, or a later one"}
    assert found(MANIFEST, replace(RESTORED, next_job_id=9)) == {}


def test_associations_and_shares() -> None:
    rows = list(RESTORED.associations)
    other = replace(RESTORED, associations=[*rows[:2], ("research", "alice", "8", 200_000)])
    assert {*found(MANIFEST, other)} == {"their shares"}
    lacking = replace(RESTORED, associations=rows[:2])
    assert {*found(MANIFEST, lacking)} == {"associations that slurmctld knows", "their shares"}
    assert any("research/alice" in row.note for row in compared(MANIFEST, lacking, 0))


@pytest.mark.parametrize(
    ("usage", "age", "expected"),
    [
        (200_000, 0.0, True),
        (185_000, 0.0, True),  # a tenth
        (150_000, 0.0, False),
        (0, 0.0, False),
        (100_000, 7 * DAY, True),  # half of it after a half-life
        (60_000, 7 * DAY, False),
        (230_000, 0.0, False),  # nothing ran that could have added it
    ],
)
def test_usage_decays_and_does_not_come_from_nowhere(usage: int, age: float, *, expected: bool) -> None:
    rows = [("root", "", "", usage), *RESTORED.associations[1:]]
    assert (found(QUIET, replace(RESTORED, associations=rows), age) == {}) == expected


def test_usage_of_jobs_that_ran_is_counted_on() -> None:
    rows = [("root", "", "", 900_000), *RESTORED.associations[1:]]
    assert found(MANIFEST, replace(RESTORED, associations=rows)) == {}


def test_usage_that_begins_anew_is_not_compared() -> None:
    anew = replace(RESTORED, half_life=None)
    assert found(MANIFEST, anew) == {"usage for fair share, in CPU seconds": Verdict.NOT_COMPARED}


def test_what_a_backup_does_not_say_is_not_compared() -> None:
    old = {"database": MANIFEST["database"], "queue": {}}
    assert {*found(old, RESTORED).values()} == {Verdict.NOT_COMPARED}
    assert len(found(old, RESTORED)) == 3

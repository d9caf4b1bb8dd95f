from deploy.errors import ExitCode
from deploy.judge.upgrade_outcome import Outcome, fates


def test_jobs_that_run_on_or_ended_once_are_unharmed() -> None:
    before = {"1": ["RUNNING", 0], "2": ["PENDING", 1], "3_1": ["RUNNING", 0], "4": ["RUNNING", 0]}
    now = {"1": ["RUNNING", 0], "2": ["RUNNING", 1]}
    found = list(fates(before, now, {"3_1": ["COMPLETED"], "4": ["FAILED"]}))
    assert [(fate.job, fate.now, fate.trouble) for fate in found] == [
        ("1", "RUNNING", ""),
        ("2", "RUNNING", ""),
        ("3_1", "COMPLETED", ""),
        ("4", "FAILED", ""),
    ]
    assert Outcome("26.05", {}, 1.0, jobs=tuple(found)).exit_code is ExitCode.OK


def test_jobs_that_are_lost_or_started_again_are_named() -> None:
    before = {"1": ["RUNNING", 0], "2": ["RUNNING", 0], "3": ["RUNNING", 0], "4": ["RUNNING", 0]}
    before["5"] = ["RUNNING", 0]
    rows = {"1": [], "2": ["NODE_FAIL"], "3": ["REQUEUED", "COMPLETED"]}
    came = Outcome("26.05", {}, 1.0, jobs=tuple(fates(before, {"4": ["RUNNING", 1]}, rows)))
    assert {fate.job: fate.trouble for fate in came.hurt} == {
        "1": "neither Slurm nor accounting knows it any more",
        "2": "accounting has it as NODE_FAIL",
        "3": "accounting has it as REQUEUED, COMPLETED",
        "4": "it was started again 1 times",
        "5": "it is not in the queue any more, and accounting does not answer",
    }
    assert came.exit_code is ExitCode.FAILED


def test_a_witness_without_its_row_fails_the_upgrade() -> None:
    assert Outcome("26.05", {}, 1.0, without_end=("7",)).exit_code is ExitCode.FAILED

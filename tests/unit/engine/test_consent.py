"""What whoever is not asked, or says no, is told."""

from deploy.engine.consent import _refusal
from deploy.errors import ExitCode
from deploy.judge.preview import preview_of
from tests.unit.judge.test_preview import RUNNING, asked, changed, loss

_RESTART = changed("ctl1", kind="restart", guarded=[loss()])
_COMMAND = "deploy cluster inventory.ini"


def test_the_jobs_are_named() -> None:
    refusal = _refusal(preview_of([asked(RUNNING), _RESTART]), _COMMAND)
    assert refusal.exit_code is ExitCode.CHANGES_PENDING
    assert "job 7 of alice" in str(refusal)
    assert f"{_COMMAND} --yes" in str(refusal)


def test_a_queue_that_does_not_answer_is_said() -> None:
    refusal = _refusal(preview_of([asked(answers=False), _RESTART]), _COMMAND)
    assert "Slurm does not answer" in str(refusal)

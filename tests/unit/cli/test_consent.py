import sys

import pytest
import typer

from deploy.cli import consent
from deploy.errors import DeployError, ExitCode
from deploy.judge.forecast import forecast_of
from tests.unit.judge.test_forecast import RUNNING, asked, changed, loss

LOSING = forecast_of([asked(RUNNING), changed("ctl1", kind="restart", guarded=[loss()])])
COMMAND = "deploy cluster inventory.ini"


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: answer)


def test_without_a_terminal_it_is_refused_with_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(DeployError) as refused:
        consent.ask_to_go_on(LOSING, COMMAND)
    assert refused.value.exit_code is ExitCode.CHANGES_PENDING
    assert "job 7 of alice" in str(refused.value)
    assert f"{COMMAND} --yes" in str(refused.value)


@pytest.mark.parametrize("answer", ["no", "", "y", "yess"])
def test_anything_but_yes_is_a_no(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    on_a_terminal(monkeypatch, answer)
    with pytest.raises(DeployError):
        consent.ask_to_go_on(LOSING, COMMAND)


def test_yes_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_terminal(monkeypatch, "Yes")
    consent.ask_to_go_on(LOSING, COMMAND)


def test_a_queue_that_does_not_answer_is_said() -> None:
    unknown = forecast_of([asked(answers=False), changed("ctl1", kind="restart", guarded=[loss()])])
    with pytest.raises(DeployError, match="Slurm does not answer"):
        consent.ask_to_go_on(unknown, COMMAND)

"""Programs as hosts get them: one text, for a Python that has nothing of deploy's."""

import json
import subprocess
import sys
from typing import Any

import pytest

from deploy.run.host_commands import runner
from deploy.run.sent_program import program, sources

_SENT = (
    *("drains", "host_records", "on_departed", "on_node", "remedies", "slurm_look", "submission_stream"),
    *("updates", "user_commands"),
)


def _typed(text: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-IS", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", _SENT)
def test_each_runs_by_itself(name: str) -> None:
    done = _typed(program(sources(name), "no such verb", {}))
    assert "KeyError: 'no such verb'" in done.stdout + done.stderr, done.stderr


def test_arguments_arrive_as_they_are_and_the_answer_is_one_line() -> None:
    done = _typed(program(sources("host_records"), "forget", {"phases": ["it's", 'so "to say" {ü}']}))
    assert json.loads(done.stdout.strip().removeprefix("deploy:")) is None, done.stderr


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("sh", "-c", "echo out; echo err >&2"), ("out\nerr\n", True)),
        (("sh", "-c", "pwd; exit 3"), ("/\n", False)),
        (("sh", "-c", "echo $LC_ALL $SLURM_TIME_FORMAT"), ("C standard\n", True)),
        (("sleep", "60"), ("", False)),
        (("cat",), ("", True)),
    ],
)
def test_whatever_a_command_does_is_an_answer(command: tuple[str, ...], expected: tuple[str, bool]) -> None:
    assert runner(1)(*command) == expected


def test_a_command_that_is_not_there_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    said, succeeded = runner(1)("/no/such/command")
    assert not succeeded
    assert "/no/such/command" in said

    def nothing(*_: Any, **__: Any) -> None:  # noqa: ANN401
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", nothing)
    assert runner(1)("true") == ("FileNotFoundError", False)

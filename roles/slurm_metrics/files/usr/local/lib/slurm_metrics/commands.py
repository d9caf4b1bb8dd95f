"""Runs Slurm's commands. One thread calls this, so the controller never has two of our calls to answer."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from prometheus_client import Metric

# Times as seconds since the epoch, and the whole expression of a job array's tasks.
_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
_LONGEST_REASON = 200


class CommandError(Exception):
    """A command could not be run, took too long or ended with an error."""

    def __init__(self, program: str, why: str | None) -> None:
        super().__init__(f"{program}: {why}")


@dataclass(frozen=True)
class Command:
    """One of Slurm's commands and what makes metrics of its output.

    ``parse`` gets standard output and the time now in seconds since the epoch. A command that says what is
    wrong on standard output, with an exit code besides, has ``may_fail``.
    """

    name: str
    arguments: Sequence[str]
    parse: Callable[[str, float], Sequence[Metric]]
    every_seconds: float = 0.0
    """At most this often; 0 is every round."""
    may_fail: bool = False


def output(command: Command, seconds: float, path: str) -> str:
    """Standard output; a command that is still running after ``seconds`` is killed.

    Raises CommandError.
    """
    environment: Mapping[str, str] = {**os.environ, **_ENVIRONMENT, "PATH": path}
    try:
        process = subprocess.Popen(
            command.arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
    except OSError as problem:
        raise CommandError(command.arguments[0], problem.strerror) from problem
    return _answer(process, command, seconds)


def _answer(process: subprocess.Popen[str], command: Command, seconds: float) -> str:
    with process:
        try:
            said, complaint = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            _forget(process.stdout, process.stderr)
            raise CommandError(command.arguments[0], f"no answer within {seconds:g} s") from None
    if process.returncode != 0 and not command.may_fail:
        reason = " ".join(complaint.split())[:_LONGEST_REASON]
        raise CommandError(command.arguments[0], reason or f"exit code {process.returncode}")
    return said


def _forget(*streams: IO[str] | None) -> None:
    """What was killed has nothing to say; a grandchild may hold its pipes open."""
    for stream in streams:
        if stream:
            stream.close()

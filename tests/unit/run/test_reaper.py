"""Nothing outlives a run, and one that is asked to stop does."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.run import reaper

# As Ansible's: what is asked again ends it in any case.
LOSES_THE_FIRST = """
import signal, time
def handler(number, frame):
    signal.signal(number, signal.SIG_DFL)
    print("lost", flush=True)
signal.signal(signal.SIGINT, handler)
print("ready", flush=True)
while True:
    time.sleep(1)
"""
DEAF = """
import signal, time
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
while True:
    time.sleep(1)
"""


@contextmanager
def watched(program: str, place: Path) -> Iterator["subprocess.Popen[str]"]:
    """A Python program below a reaper; it is ready."""
    guard = [sys.executable, "-I", "-S", str(reaper.__file__), str(os.getpid()), str(place / "pid")]
    command = [*guard, str(place), sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_one_that_loses_the_first_interrupt_gets_a_second_one(tmp_path: Path) -> None:
    with watched(LOSES_THE_FIRST, tmp_path) as process:
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    assert said == "lost\n"
    assert process.returncode == 128 + signal.SIGINT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_that_does_not_listen_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    with watched(DEAF, tmp_path) as process:
        process.send_signal(number)
        process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL

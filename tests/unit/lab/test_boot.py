"""The namespaces here are real; numbers per CPU are those of Linux 6.18 and newer."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploy.lab import boot

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces")


@contextmanager
def in_namespace_made_on(cpu: int) -> Iterator[int]:
    """The id of a process in a mount namespace of its own."""
    command = ["taskset", "--cpu-list", str(cpu), "unshare", "--mount"]
    command += [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def number_of_next(cpu: int) -> int:
    with in_namespace_made_on(cpu) as process:
        number = boot._number_of_namespace(process)
    if number is None:
        pytest.skip("this kernel does not tell the numbers of namespaces")
    return number


@as_root
def test_later_namespaces_have_higher_numbers_on_every_cpu() -> None:
    cpus = os.sched_getaffinity(0)
    number = max(number_of_next(cpu) for cpu in cpus)
    boot._use_up_numbers_below(number)
    assert all(number_of_next(cpu) > number for cpu in cpus)


def test_a_container_that_ended_at_once_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "podman", lambda *_: "0")
    monkeypatch.setattr(boot, "_use_up_numbers_below", pytest.fail)
    boot.boot("machine", "start", "machine")


@as_root
def test_what_is_started_uses_up_the_numbers_below_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []
    monkeypatch.setattr(boot, "_use_up_numbers_below", used.append)
    monkeypatch.setattr(boot, "podman", lambda *_: str(os.getpid()))
    boot.boot("machine", "start", "machine")
    assert used == [number for number in [boot._number_of_namespace(os.getpid())] if number is not None]

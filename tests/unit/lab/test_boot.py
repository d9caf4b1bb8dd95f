import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.lab import boot


def test_what_is_started_meanwhile_runs_on_one_cpu_alone() -> None:
    before = os.sched_getaffinity(0)
    cpu = min(before)
    with boot._on_one_cpu(cpu):
        ask = "import os; print(*os.sched_getaffinity(0))"
        said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [str(cpu)]
    assert os.sched_getaffinity(0) == before


def test_nothing_is_bound_where_it_makes_no_difference() -> None:
    before = os.sched_getaffinity(0)
    with boot._on_one_cpu(None):
        assert os.sched_getaffinity(0) == before


def test_a_caller_that_is_bound_binds_no_machine() -> None:
    everything = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(everything)})
    boot._all_cpus.cache_clear()
    try:
        assert boot._all_cpus() == everything
        with boot._on_one_cpu(None):
            assert os.sched_getaffinity(0) == everything
    finally:
        os.sched_setaffinity(0, everything)


def test_the_threads_of_everything_in_a_container_are_found() -> None:
    with subprocess.Popen(["sleep", "60"]) as one:
        assert {os.getpid(), one.pid} <= set(boot._tasks(one.pid))
        one.kill()
    assert list(boot._tasks(one.pid)) == []


def test_a_process_that_ends_while_it_is_looked_at_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(_: object) -> list[Path]:
        raise FileNotFoundError

    namespace = boot._namespace(Path(f"/proc/{os.getpid()}"))
    monkeypatch.setattr(boot, "_namespace", lambda _: namespace)
    monkeypatch.setattr(Path, "iterdir", ended)
    assert list(boot._tasks(os.getpid())) == []


@pytest.mark.parametrize(
    ("numbers", "expected"), [({0: 900, 1: 100}, 1), ({0: None, 1: None}, None), ({0: 5}, None)]
)
def test_the_cpu_with_the_lowest_numbers(
    numbers: dict[int, int | None], expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boot, "_all_cpus", lambda: frozenset(numbers))
    monkeypatch.setattr(boot, "_next_number", lambda cpu: numbers[cpu])
    boot._cpu_with_lowest_numbers.cache_clear()
    assert boot._cpu_with_lowest_numbers() == expected
    boot._cpu_with_lowest_numbers.cache_clear()

from pathlib import Path

import pytest

from deploy.judge.convergence import last_convergences
from deploy.run.journal import Journal, RecordedRun, recorded_runs


def _run(number: int, *converged: str, version: str = "1.0", ended: float | None = 1.0) -> RecordedRun:
    metadata = {"version": version, "converged": list(converged)}
    return RecordedRun(Path(f"run{number}"), metadata | ({"ended": ended} if ended else {}))


def test_the_last_run_that_converged_a_host_counts() -> None:
    found = last_convergences(
        [
            _run(1, "node1", "node2", version="1.0", ended=100.0),
            _run(2, "node1", version="1.1", ended=200.0),
            _run(3, ended=300.0),
        ]
    )
    assert {host: (end.at, end.version, end.run) for host, end in found.items()} == {
        "node1": (200.0, "1.1", "run2"),
        "node2": (100.0, "1.0", "run1"),
    }


def test_a_run_without_a_last_word_converged_nobody() -> None:
    assert last_convergences([_run(1, "node1", ended=None)]) == {}


def test_what_a_run_converged_is_recorded_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    Journal.create(tmp_path, {"version": "1.2"}).finish(converged=["node1"])
    assert last_convergences(recorded_runs(tmp_path))["node1"].version == "1.2"

"""Files of tests run side by side, and then alone where others may have disturbed them."""

import threading
from pathlib import Path
from threading import Event

import pytest

from tests.cluster.lab_cluster import Cluster
from tests.slurm_testsuite import run
from tests.slurm_testsuite.outcomes import FAILED, PASSED, SKIPPED, Outcome
from tests.slurm_testsuite.results import Results, Run

KNOWN = {"expect": {"known": "why"}}


@pytest.fixture
def interrupted() -> Event:
    """What slow tests wait for."""
    return Event()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, interrupted: Event) -> list[tuple[str, bool]]:
    """(file, alone) of what was run."""
    made: list[tuple[str, bool]] = []

    def run_file(_: Cluster, part: str, file: str, *, alone: bool, limit: int) -> tuple[Run, str]:
        made.append((file, alone))
        if file == "stopped" and made.count((file, alone)) == 1:
            raise KeyboardInterrupt
        if file.startswith("slow"):
            interrupted.wait()
        states = {"known": FAILED, "bad": FAILED, "crowded": PASSED if alone else SKIPPED}
        outcome = Outcome(file, states.get(file, PASSED), f"node, {limit}")
        return Run(part, file, alone, 1.0, (outcome,)), f"all that {file} said"

    monkeypatch.setattr(run, "run_file", run_file)
    monkeypatch.setattr(run, "_empty", lambda _: None)
    monkeypatch.setattr(run, "FOR_ITSELF", {("expect", "rough")})
    return made


def _run(place: Path, *files: str, jobs: int = 2) -> Results:
    results = Results(place)
    cluster = Cluster("none", place, "trixie")
    run.run_all(cluster, [("expect", file) for file in files], results, KNOWN, jobs=jobs, limit=5)
    return results


def test_what_did_not_pass_beside_others_is_run_again_alone(
    tmp_path: Path, calls: list[tuple[str, bool]]
) -> None:
    results = _run(tmp_path, "good", "known", "bad", "crowded")
    assert sorted(calls[:4]) == [("bad", False), ("crowded", False), ("good", False), ("known", False)]
    assert calls[4:] == [("bad", True), ("crowded", True)]
    assert results.runs["expect", "crowded"].outcomes == (Outcome("crowded", PASSED, "node, 5"),)
    assert (tmp_path / "expect" / "bad.log").read_text(encoding="utf-8") == "all that bad said"
    assert not (tmp_path / "expect" / "crowded.log").exists()


def test_what_disturbs_all_others_runs_alone(tmp_path: Path, calls: list[tuple[str, bool]]) -> None:
    _run(tmp_path, "rough", "good")
    assert calls == [("good", False), ("rough", True)]


def test_a_run_goes_on_where_it_was_interrupted(tmp_path: Path, calls: list[tuple[str, bool]]) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path, "good", "stopped", "bad", jobs=1)
    assert calls == [("good", True), ("stopped", True)]
    results = _run(tmp_path, "good", "stopped", "bad", jobs=1)
    assert calls[2:] == [("stopped", True), ("bad", True)]
    assert Results(tmp_path).runs == results.runs


def test_no_more_is_begun_after_an_interruption_and_nothing_is_waited_for(
    tmp_path: Path, calls: list[tuple[str, bool]], interrupted: Event
) -> None:
    with pytest.raises(KeyboardInterrupt):
        _run(tmp_path, "stopped", *(f"slow{number}" for number in range(9)))
    assert len(calls) <= 3
    interrupted.set()
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPoolExecutor"):
            thread.join()

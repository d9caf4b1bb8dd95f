import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

from deploy.cli.app import VERBS
from deploy.errors import DeployError, ExitCode
from deploy.run import journal
from deploy.run.events import Ending, Event, PlayStarted, RunEnded
from deploy.run.journal import Journal, last_run, last_run_of_user, recordable, recorded_runs, state_directory


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    made = tmp_path / "site"
    made.mkdir()
    return made


def test_a_run_is_read_back(site: Path) -> None:
    made = Journal.create(site, {"hosts": ["a"], "verb": "cluster"})
    events: list[Event] = [PlayStarted(1.0, "P"), RunEnded(2.0, 0, Ending.FINISHED)]
    for event in events:
        made.append(event)
    made.finish()
    run = last_run(site)
    assert run
    assert list(run.events()) == events
    assert (run.hosts, run.is_complete, run.started) == (("a",), True, made.started)
    assert run.metadata["verb"] == "cluster"


def test_what_hosts_record_is_known_of_a_run_that_came_to_its_end(site: Path) -> None:
    made = Journal.create(site, {"hosts": ["a"]})
    begun = last_run(site)
    made.finish(recorded={"a": "0123"})
    ended = last_run(site)
    assert begun
    assert ended
    assert (begun.recorded, ended.recorded) == ({}, {"a": "0123"})


def test_an_event_is_in_the_file_at_once_and_a_cut_line_is_left_out(site: Path) -> None:
    made = Journal.create(site, {})
    made.append(PlayStarted(1.0, "P"))
    with (made.path / "events.jsonl").open("a") as file:
        file.write('{"event":"play_started","at":2.0,"pl')
    run = last_run(site)
    assert run
    assert not run.is_complete
    assert list(run.events()) == [PlayStarted(1.0, "P")]
    made.finish()


def test_lost_files_are_survived(site: Path) -> None:
    made = Journal.create(site, {})
    made.finish()
    (made.path / "run.json").write_text("{")
    (made.path / "events.jsonl").unlink()
    run = last_run(site)
    assert run
    assert (run.is_complete, run.started, list(run.events())) == (False, None, [])


def test_runs_of_one_second_keep_their_order(site: Path) -> None:
    made = [Journal.create(site, {}) for _ in range(8)]
    for run in made:
        run.finish()
    assert [run.id for run in recorded_runs(site)] == [run.path.name for run in made]


def test_it_is_private(site: Path) -> None:
    made = Journal.create(site, {})
    made.finish()
    for path in (site / ".deploy", made.path.parent, made.path, *made.path.iterdir()):
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_newest_runs_are_kept(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_KEPT_RUNS", 3)
    runs = state_directory(site) / "runs"
    for name in ("20200101T000000Z-aaaa", "20210101T000000Z-aaaa", "20220101T000000Z-aaaa"):
        (runs / name).mkdir()
    made = Journal.create(site, {})
    made.finish()
    assert [run.id for run in recorded_runs(site)] == [
        "20210101T000000Z-aaaa",
        "20220101T000000Z-aaaa",
        made.path.name,
    ]


def test_the_users_last_run_is_found_from_anywhere(site: Path, tmp_path: Path) -> None:
    assert last_run_of_user() is None
    Journal.create(site, {}).finish()
    other = tmp_path / "other"
    other.mkdir()
    made = Journal.create(other, {})
    made.finish()
    run = last_run_of_user()
    assert run
    assert run.path == made.path


def test_without_a_writable_home_a_run_still_counts(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    Journal.create(site, {}).finish()
    assert last_run(site)


def test_a_site_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="site-not-writable"):
        state_directory(tmp_path / "missing")


def test_no_run_yet(site: Path) -> None:
    assert last_run(site) is None
    assert recorded_runs(site) == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-e", "password=x", "-C"], ["-e", "(not recorded)", "-C"]),
        (["--extra-vars", "password=x"], ["--extra-vars", "(not recorded)"]),
        (["--extra-vars=password=x"], ["--extra-vars=(not recorded)"]),
        (["-epassword=x"], ["-e(not recorded)"]),
        (["-Ke", "password=x", "-C"], ["-Ke", "(not recorded)", "-C"]),
        (["-CDvepassword=x\nnext=y"], ["-CDve(not recorded)"]),
        (["-ve", "@file.yml"], ["-ve", "@file.yml"]),
        (["-lnode1", "-uoperator", "-tmunge"], ["-lnode1", "-uoperator", "-tmunge"]),
        (["-e", "@file.yml", "-e@other.yml"], ["-e", "@file.yml", "-e@other.yml"]),
        (["cluster", "inv.ini", "--limit", "a=b"], ["cluster", "inv.ini", "--limit", "a=b"]),
    ],
)
def test_values_of_extra_variables_are_not_recorded(given: list[str], kept: list[str]) -> None:
    assert recordable(given) == kept


class _FullDisk(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said(site: Path) -> None:
    made = Journal.create(site, {})
    made._file.close()
    made._file = _FullDisk()
    with pytest.raises(DeployError, match="No space left on device") as stopped:
        made.append(PlayStarted(1.0, "P"))
    assert stopped.value.exit_code == ExitCode.INTERNAL


@pytest.mark.parametrize("moment", ["create", "finish"])
def test_a_full_disk_is_said_at_every_moment(
    site: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    made = Journal.create(site, {})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(journal, "replace_file", full)
    with pytest.raises(DeployError, match=r"No space left on device \[journal-not-written\]"):
        Journal.create(site, {}) if moment == "create" else made.finish()
    made._file.close()


def test_a_journal_that_another_may_read_is_said(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "iterdir", refused)
    for ask in (recorded_runs, last_run):
        with pytest.raises(DeployError, match=r"Permission denied \[site-not-writable\]"):
            ask(site)


def test_the_traceback_of_a_fault_is_kept_in_its_run(site: Path) -> None:
    made = Journal.create(site, {})
    message = "a fault of its own"
    with pytest.raises(DeployError) as problem, made.keeps_faults():
        raise ValueError(message)
    assert problem.value.exit_code is ExitCode.INTERNAL
    assert problem.value.findings[0].reference == "internal-error"
    kept = made.path / "traceback.txt"
    assert str(kept) in problem.value.findings[0].hint
    assert message in kept.read_text()
    assert message not in str(problem.value)
    assert kept.stat().st_mode & 0o777 == 0o600
    made.finish()


def test_what_is_no_fault_is_not_kept_as_one(site: Path) -> None:
    made = Journal.create(site, {})
    refusal = DeployError()
    with pytest.raises(DeployError) as problem, made.keeps_faults():
        raise refusal
    assert problem.value is refusal
    assert not (made.path / "traceback.txt").exists()
    made.finish()


def test_short_options_with_a_value_are_those_of_the_verbs() -> None:
    found = {
        name[1]
        for verb in VERBS
        for command in _with_their_own(verb.load())
        for parameter in command.params
        for name in parameter.opts
        if len(name) == len("-e") and not (parameter.is_flag or parameter.count)
    }
    assert found == {*journal._WITH_VALUES, "e"}


def _with_their_own(command: Any) -> list[Any]:  # noqa: ANN401 - Typer has its own click
    inner = getattr(command, "commands", {}).values()
    return [command, *(each for verb in inner for each in _with_their_own(verb))]

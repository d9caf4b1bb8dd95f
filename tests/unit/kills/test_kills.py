"""What a killed run leaves is seen, and what it leaves as it should is not taken for trouble."""

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.place import NEW_SECONDS
from tests.campaign import chance_of
from tests.cluster.lab_cluster import Cluster
from tests.kills.figures import KILLS_HEAD, kills_table
from tests.kills.leftovers import MARK, half_written, left, of_the_site, processes, unparsed
from tests.kills.on_host import parse
from tests.kills.rounds import CHANGE, FAILOVER, FIRST, KINDS, Ground, Round, shares

_EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def look(digest: str | None, **more: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - JSON
    files = {"/etc/x": digest} if digest else {}
    return {"ctl1": {"files": files, "wrong": {}, "undone": {}, "locked": [], "temporary": [], **more}}


@pytest.mark.parametrize(
    ("before", "now", "after", "is_half", "is_half_at_first"),
    [
        ("a", "a", "b", False, False),
        ("a", "b", "b", False, False),
        (None, None, "b", False, False),
        ("a", "c", "b", True, False),
        ("a", None, "b", True, False),
        ("a", _EMPTY, "b", True, True),
    ],
)
def test_a_file_is_as_it_was_or_as_it_is_meant(
    *, before: str | None, now: str | None, after: str, is_half: bool, is_half_at_first: bool
) -> None:
    looks = (look(before), look(now), look(after))
    for is_first, expected in ((False, is_half), (True, is_half_at_first)):
        found = list(half_written({"ctl1": ["/etc/x"]}, *looks, is_first=is_first))
        assert found == ([("ctl1", "/etc/x")] if expected else [])


def test_what_does_not_parse_and_what_is_left_is_named() -> None:
    before = look("a", temporary=["/tmp/deploy-x-1"])
    after = look("a", temporary=["/tmp/deploy-x-1", "/etc/.hosts.7"], locked=["/var/lib/dpkg/lock"])
    assert list(left(before, after)) == [("ctl1", "/etc/.hosts.7"), ("ctl1", "/var/lib/dpkg/lock is locked")]
    assert list(unparsed(look("a", wrong={"sshd -t": "line 3"}))) == [("ctl1", "sshd -t: line 3")]


@pytest.mark.parametrize(
    ("name", "text", "is_whole"),
    [
        ("a.json", '{"a": 1}', True),
        ("a.json", '{"a": ', False),
        ("a.py", "x = 1\n", True),
        ("a.py", "def x(", False),
        ("a.sh", "if true; then echo; fi\n", True),
        ("a.sh", "if true; then echo\n", False),
        ("program", "#!/bin/sh\ncase x in\n", False),
        ("a.conf", "whatever (", True),
    ],
)
def test_files_are_parsed_by_their_kind(tmp_path: Path, name: str, text: str, *, is_whole: bool) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert (parse(path) == "") is is_whole


def test_the_site_is_looked_at_too(tmp_path: Path) -> None:
    class Site:
        directory = tmp_path

    (tmp_path / "secrets.yml").write_text("a: 1\n")
    (tmp_path / ".deploy").mkdir()
    assert list(of_the_site(Site, [])) == []  # type: ignore[arg-type]
    (tmp_path / "secrets.yml").write_text('a: "b\n')
    (tmp_path / ".deploy" / "run.json").write_text("{")
    (tmp_path / ".hardware.yml.123").touch()
    found = "\n".join(of_the_site(Site, []))  # type: ignore[arg-type]
    assert all(name in found for name in ("secrets.yml", "run.json", ".hardware.yml.123"))


def test_the_processes_of_a_run_are_known_wherever_they_went(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "a-round")
    call = [sys.executable, "-c", "print('lives', flush=True); input()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(call, stdin=pipe, stdout=pipe, start_new_session=True) as process:
        assert process.stdout
        process.stdout.readline()  # the kernel has its environment a moment after it has begun
        assert process.pid in processes("a-round")
        assert process.pid not in processes("another")
        process.communicate(b"\n")


def _round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Round, list[float]]:
    """One whose clock goes on as it waits; it says for how long it did."""
    waited: list[float] = []
    monkeypatch.setattr(
        "tests.kills.rounds.time",
        SimpleNamespace(
            time=lambda: time.time() + sum(waited),
            monotonic=lambda: sum(waited),
            sleep=waited.append,
        ),
    )
    monkeypatch.setattr(Ground, "_memory", tmp_path / "memory")
    cluster = Cluster("toy", tmp_path, "trixie")
    return Round(Ground(cluster, tmp_path, print), CHANGE, 1, chance_of(1, 1)), waited


@pytest.mark.parametrize(("looks_until_clean", "waits"), [(1, 0), (3, 2)])
def test_hosts_are_judged_when_the_last_of_a_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks_until_clean: int, waits: int
) -> None:
    one, waited = _round(tmp_path, monkeypatch)
    locked = ["/var/lib/dpkg/lock"]
    said = [look("a", locked=locked)] * (looks_until_clean - 1) + [look("a")]
    monkeypatch.setattr("tests.kills.rounds.looks", lambda *_: said.pop(0))
    assert not any(left(look("a"), one._rested(look("a"), 0)))
    assert len(waited) == waits


def test_what_stays_on_hosts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, waited = _round(tmp_path, monkeypatch)
    monkeypatch.setattr("tests.kills.rounds.looks", lambda *_: look("a", temporary=["/tmp/deploy-x-1"]))
    assert list(left(look("a"), one._rested(look("a"), 0))) == [("ctl1", "/tmp/deploy-x-1")]
    assert waited


def test_a_directory_that_a_killed_run_left_is_old_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, waited = _round(tmp_path, monkeypatch)
    left_behind = one.ground.places[1] / "deploy-run-1"
    left_behind.mkdir()
    came = SimpleNamespace(returncode=0, stdout="converged (0 changes", stderr="")
    monkeypatch.setattr(Ground, "typed", lambda *_: came)
    one._converged()
    assert one.troubles == []
    assert left_behind.stat().st_mtime < time.time() - NEW_SECONDS
    assert not waited


def test_a_run_that_ended_before_it_was_killed_says_how_long_one_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = _round(tmp_path, monkeypatch)
    one.ground.took[CHANGE] = 200.0
    monkeypatch.setattr(Ground, "words", lambda *_: [sys.executable, "-c", ""])
    assert not one._killed("a-round", 200.0, all_of_them=False)
    assert one.ground.took[CHANGE] < 200.0
    assert one.troubles == []


def test_kills_are_shared_out() -> None:
    assert shares(5, KINDS) == [FIRST, CHANGE, CHANGE, FAILOVER, FAILOVER]
    assert shares(1, KINDS) == [CHANGE]
    assert len(shares(100, KINDS)) == 100
    assert shares(3, {CHANGE: ""}) == [CHANGE] * 3


def test_what_ended_before_it_was_killed_is_no_round() -> None:
    one = {"moment": 3.0, "is_killed": True, "all_of_them": True, "well": 40.0, "troubles": ["x", "y"]}
    other = {**one, "moment": 9.0, "all_of_them": False, "well": 60.0, "troubles": []}
    rounds = [one, other, {**one, "is_killed": False}]
    (row,) = kills_table({CHANGE: {"what": "a change", "rounds": rounds}, FIRST: {"what": "", "rounds": []}})
    assert dict(zip(KILLS_HEAD, row, strict=True)) == {
        "killed": "a change",
        "rounds": "2",
        "of them with all of its processes": "1",
        "killed after (s)": "6 (3 to 9)",
        "s until typed again it had converged": "50 (40 to 60)",
        "with trouble": "1",
    }

"""What a run leaves when it ends, and when it is killed."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from deploy.in_memory import place_for_secrets
from deploy.place import place_on_disk, private_place

_RUN = """
import time
import sys
from deploy.place import place_on_disk, private_place
kinds = {"run": private_place, "bundle": place_on_disk}
with kinds.get(sys.argv[1], private_place)(sys.argv[1]) as place:
    (place / "generated.json").write_text("{}")
    print(place, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=place_for_secrets()) as name:
        monkeypatch.setenv("TMPDIR", name)
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        monkeypatch.setattr("tempfile.tempdir", name)
        yield Path(name)


def _grow_old(path: Path) -> None:
    os.utime(path, (0, 0))


def test_it_is_private_and_vanishes() -> None:
    with private_place() as place:
        assert place.stat().st_mode & 0o777 == 0o700
        (place / "generated.json").write_text("{}")
    assert not place.exists()


def _by_a_run_that_has_nothing_to_do(_: str) -> AbstractContextManager[Path]:
    """It starts no Ansible, and so makes no place of the kind that the killed one left."""
    return private_place()


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("place", private_place),
        ("run", private_place),
        ("bundle", place_on_disk),
        ("run", _by_a_run_that_has_nothing_to_do),
    ],
)
def test_what_a_killed_run_left_is_swept_and_what_a_run_holds_is_not(
    parent: Path, kind: str, made: Callable[[str], AbstractContextManager[Path]]
) -> None:
    command = [sys.executable, "-c", _RUN, kind]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as run:
        assert run.stdout
        left = Path(run.stdout.readline().strip())
        _grow_old(left)
        with made(kind):
            assert (left / "generated.json").exists()
        run.kill()
        run.wait()
    assert (left / "generated.json").exists()
    with made(kind) as place:
        assert [path.name for path in parent.iterdir()] == [place.name]


def test_what_is_new_or_no_directory_of_a_run_stays(parent: Path) -> None:
    new, other, link = (parent / name for name in ("deploy-place-new", "deploy-other", "deploy-place-link"))
    new.mkdir()
    other.mkdir()
    _grow_old(other)
    link.symlink_to(other)
    with private_place():
        assert new.exists()
        assert other.exists()
        assert link.is_symlink()


def test_what_is_large_lies_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/tmp may be in memory."""
    monkeypatch.delenv("TMPDIR", raising=False)
    with place_on_disk("large") as place:
        assert place.parent == Path("/var/tmp")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with place_on_disk("large") as place:
        assert place.parent == tmp_path

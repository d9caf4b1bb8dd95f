"""What is written, and in which order it is on disk."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy import durable


def _take_place(path: Path, text: str) -> None:
    beside = path.with_name("beside")
    beside.write_text(text)
    beside.chmod(0o600)
    durable.take_place(beside, path)


@pytest.mark.parametrize("write", [durable.replace_file, _take_place])
def test_a_file_is_on_disk_before_it_takes_its_place_and_then_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path, str], None]
) -> None:
    """What is not synced before the rename is empty after a power cut, on file systems that delay writing."""
    done: list[str] = []
    sync, rename = os.fsync, Path.replace

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        content = "" if path.is_dir() else f" {path.read_text()}"
        done.append(f"sync {'directory' if path.is_dir() else 'file'}{content}")
        sync(descriptor)

    def replace(self: Path, target: Path) -> Path:
        done.append(f"rename to {target.name}")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    path = tmp_path / "secrets.yml"
    path.write_text("old")
    write(path, "new")
    assert done == ["sync file new", "rename to secrets.yml", "sync directory"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["secrets.yml"]


def test_what_cannot_be_written_leaves_the_old_one_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    path = tmp_path / "hardware.yml"
    path.write_text("old")
    with pytest.raises(OSError, match="No space"):
        durable.replace_file(path, "new")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["hardware.yml"]


@pytest.mark.parametrize("write", [durable.write_private, durable.replace_file])
def test_what_was_open_to_all_is_its_owners_alone(tmp_path: Path, write: Callable[..., Any]) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    path.chmod(0o644)
    write(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)


def test_a_page_may_go_where_no_file_is() -> None:
    durable.write_private(Path(os.devnull), "text")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.fixture
def living() -> Iterator[subprocess.Popen[bytes]]:
    """A process of another's that does not end meanwhile."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_what_a_killed_writer_left_beside_a_file_goes_with_the_next_write(
    tmp_path: Path, living: subprocess.Popen[bytes]
) -> None:
    """What others write stays: other processes, other hosts that share the directory, other files."""
    path, here = tmp_path / "secrets.yml", os.uname().nodename
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    dead, own, other = ended.pid, os.getpid(), living.pid
    goes = [f".{path.name}.{here}.{dead}", f".{path.name}.{here}.{own}"]
    stays = [f".{path.name}.{here}.{other}", f".{path.name}.elsewhere.{dead}", f".other.{here}.{dead}"]
    stays += [f".{path.name}.{here}.swp", path.name]
    for name in (*goes, *stays):
        (tmp_path / name).touch()
    durable.replace_file(path, "new")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(stays)


def test_a_link_stays_and_the_file_is_where_it_leads(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    kept, link = elsewhere / "secrets.yml", tmp_path / "secrets.yml"
    link.symlink_to("elsewhere/secrets.yml")
    for text in ("first", "second"):
        durable.replace_file(link, text)
        assert link.is_symlink()
        assert kept.read_text() == text
        assert [*elsewhere.iterdir()] == [kept]

"""What modules write on hosts, and in which order it is on disk."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import tests.unit.roles.loading  # noqa: F401 - makes the project's part of ansible.module_utils importable

durable = import_module("ansible.module_utils.durable")


def test_a_file_is_on_disk_before_it_takes_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    rename = Path.replace

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        done.append("sync directory" if path.is_dir() else f"sync {path.read_text()}")

    def replace(self: Path, target: Path) -> Path:
        done.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    path = tmp_path / "slurm.conf"
    path.write_text("before")
    durable.replace_file(path, b"after", 0o640, (os.getuid(), os.getgid()))
    assert done == ["sync after", "rename", "sync directory"]
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("after", 0o640)
    assert [entry.name for entry in tmp_path.iterdir()] == ["slurm.conf"]


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
    path, here = tmp_path / "slurm.conf", os.uname().nodename
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    dead, own, other = ended.pid, os.getpid(), living.pid
    goes = [f".{path.name}.{here}.{dead}", f".{path.name}.{here}.{own}"]
    stays = [f".{path.name}.{here}.{other}", f".{path.name}.elsewhere.{dead}", f".other.{here}.{dead}"]
    stays += [f".{path.name}.{here}.swp", path.name]
    for name in (*goes, *stays):
        (tmp_path / name).touch()
    durable.replace_file(path, b"new", 0o644)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(stays)

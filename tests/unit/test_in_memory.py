"""Where files with secrets lie, by what this machine has."""

from pathlib import Path

import pytest

from deploy import in_memory

_MOUNTS = """\
21 1 8:1 / / rw - ext4 /dev/sda1 rw
22 21 0:5 / {memory} rw,nosuid shared:1 - tmpfs tmpfs rw
23 22 8:2 / {memory}/disk rw - xfs /dev/sdb1 rw
24 21 8:2 / {other} rw - xfs /dev/sdb1 rw
"""


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place, other = tmp_path / "in memory", tmp_path / "in memory too"
    (place / "disk").mkdir(parents=True)
    (place / "below").mkdir()
    other.mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        _MOUNTS.format(memory=str(place).replace(" ", r"\040"), other=str(other).replace(" ", r"\040"))
    )
    monkeypatch.setattr(in_memory, "_MOUNTS", mounts)
    monkeypatch.setattr(in_memory, "_SHARED", place)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return place


def test_the_mount_that_is_nearest_says_what_it_is(memory: Path) -> None:
    assert in_memory.is_in_memory(memory)
    assert in_memory.is_in_memory(memory / "below")
    assert not in_memory.is_in_memory(memory / "disk")
    assert not in_memory.is_in_memory(memory.with_name("in memory too"))
    assert not in_memory.is_in_memory(memory.parent)


def test_ones_own_directory_comes_before_everybodys(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_memory.place_for_secrets() == memory
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(memory / "below"))
    assert in_memory.place_for_secrets() == memory / "below"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(memory / "disk"))
    assert in_memory.place_for_secrets() == memory


def test_a_directory_that_is_somebody_elses_is_not_taken(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: memory.stat().st_uid + 1)
    assert in_memory.place_for_secrets() == memory.parent / "temporary"
    memory.chmod(0o1777)
    assert in_memory.place_for_secrets() == memory


def test_what_is_full_or_not_there_is_not_taken(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "_ROOM", 1 << 70)
    assert in_memory.place_for_secrets() == memory.parent / "temporary"
    monkeypatch.setattr(in_memory, "_SHARED", memory / "nowhere")
    assert in_memory.place_for_secrets() == memory.parent / "temporary"

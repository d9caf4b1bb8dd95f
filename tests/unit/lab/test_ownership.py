import os
from pathlib import Path

import pytest

from deploy.lab.ownership import hand_over, make_directory


def test_files_go_to_the_caller_of_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Path, int, int]] = []
    monkeypatch.setattr(os, "chown", lambda path, user, group: calls.append((path, user, group)))
    hand_over(tmp_path, {"SUDO_UID": "1000", "SUDO_GID": "1001"})
    hand_over(tmp_path, {})
    assert calls == [(tmp_path, 1000, 1001)]


def test_only_new_directories_are_made(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    make_directory(tmp_path / "a/b", mode=0o700)
    assert (tmp_path / "a/b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755
    assert tmp_path.stat().st_mode & 0o777 == 0o711

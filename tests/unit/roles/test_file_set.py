import os
from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/library/file_set.py")


@pytest.mark.parametrize(("mode", "expected"), [(0o644, 0o755), (0o640, 0o750), (0o600, 0o700)])
def test_who_may_read_may_search(mode: int, expected: int) -> None:
    assert module.directory_mode(mode) == expected


def test_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    (tmp_path / ".hidden").write_text("x")
    (tmp_path / "below").mkdir()
    assert module.present(tmp_path) == {"a.json": "[]"}
    assert module.present(tmp_path / "missing") == {}


def test_mode_owner_and_group(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[]")
    path.chmod(0o640)
    assert module.belongs(path, 0o640, (os.getuid(), os.getgid()))
    assert not module.belongs(path, 0o644, (os.getuid(), os.getgid()))

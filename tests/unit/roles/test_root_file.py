import errno
import os
import re
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.roles.loading import load_module

module = load_module("playbooks/module_utils/root_file.py")


class Machine(SimpleNamespace):
    """What is asked of an AnsibleModule; root of this machine is who runs the test."""

    def atomic_move(self, source: str, target: str, **_: bool) -> None:
        if Path(target).exists():
            Path(source).chmod(stat.S_IMODE(Path(target).stat().st_mode))
        Path(source).replace(target)

    def set_mode_if_different(self, path: str, mode: int, changed: object) -> object:
        if stat.S_IMODE(Path(path).stat().st_mode) == mode:
            return changed
        if not self.check_mode:
            Path(path).chmod(mode)
        return True

    def set_owner_if_different(self, path: str, owner: str, changed: object) -> object:
        self.owners.append((path, owner))
        return changed

    set_group_if_different = set_owner_if_different


@pytest.fixture
def machine() -> Machine:
    return Machine(check_mode=False, owners=[])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "below/file"


def test_a_file_is_made_and_then_left_alone(machine: Machine, path: Path) -> None:
    assert module.keep(machine, path, "text\n")
    assert (module.text_of(path), stat.S_IMODE(path.stat().st_mode)) == ("text\n", 0o644)
    assert list(path.parent.iterdir()) == [path]
    assert not module.keep(machine, path, "text\n")


@pytest.mark.parametrize("text", ["text\n", "other\n"])
def test_a_wrong_mode_does_not_stay(machine: Machine, path: Path, text: str) -> None:
    module.keep(machine, path, "text\n")
    path.chmod(0o606)
    assert module.keep(machine, path, text)
    assert (module.text_of(path), stat.S_IMODE(path.stat().st_mode)) == (text, 0o644)


def test_a_file_is_root_s(machine: Machine, path: Path) -> None:
    module.keep(machine, path, "text\n")
    assert machine.owners == [(str(path), "root")] * 2


def test_a_secret_is_only_root_s(machine: Machine, path: Path) -> None:
    module.keep(machine, path, "text\n", 0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_check_says_what_it_would_do(machine: Machine, path: Path) -> None:
    foresees = Machine(check_mode=True, owners=[])
    assert module.keep(foresees, path, "text\n")
    assert not path.exists()
    module.keep(machine, path, "text\n")
    path.chmod(0o606)
    assert module.keep(foresees, path, "text\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o606


def test_what_is_not_there_is_not_given_to_root(machine: Machine, path: Path) -> None:
    assert not module.give_to_root(machine, path)
    assert module.text_of(path) == ""


def test_what_is_no_text_stays_as_it_is(machine: Machine, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"caf\xe9\n")
    module.keep(machine, path, module.text_of(path) + "more\n")
    assert path.read_bytes() == b"caf\xe9\nmore\n"


def test_what_a_full_disk_refuses_leaves_nothing_and_is_named(
    machine: Machine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module.keep(machine, path, "text\n")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=re.escape(f"[Errno 28] No space left on device: '{path}'")):
        module.keep(machine, path, "other\n")
    assert list(path.parent.iterdir()) == [path]
    assert module.text_of(path) == "text\n"

"""Locks of labs are root's alone, and who waits for one is told."""

import stat
import subprocess
import sys

import pytest

from deploy.lab import locks

_HOLD = """
import fcntl, sys
with open(sys.argv[1]) as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_nobody_else_can_open_a_lock() -> None:
    with locks.exclusive("lab-demo"):
        pass
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (locks.PLACE, locks.PLACE / "lab-demo.lock")]
    assert modes == [0o700, 0o600]


def test_a_link_in_the_place_of_a_lock_is_not_followed() -> None:
    locks.PLACE.mkdir()
    other = locks.PLACE / "other"
    other.write_text("kept")
    (locks.PLACE / "lab-demo.lock").symlink_to(other)
    with pytest.raises(OSError, match="symbolic"), locks.exclusive("lab-demo"):
        pass
    assert other.read_text() == "kept"


def test_who_waits_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    with locks.exclusive("lab-demo"):
        pass
    assert said == []
    path = str(locks.PLACE / "lab-demo.lock")
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        release = holder.stdin

        def hear(line: str) -> None:
            said.append(line)
            release.close()

        monkeypatch.setattr(sys.stderr, "write", hear)
        with locks.exclusive("lab-demo"):
            assert holder.wait() == 0
        monkeypatch.undo()
    assert said == ["deploy: waiting for another deploy that is at lab demo\n"]

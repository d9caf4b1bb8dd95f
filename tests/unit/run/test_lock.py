import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.errors import DeployError, ExitCode
from deploy.run.lock import site_lock

HOLDER = """
import sys, time
from pathlib import Path
from deploy.run.lock import site_lock
with site_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_is_refused_and_learns_who_holds_it(tmp_path: Path) -> None:
    with site_lock(tmp_path), pytest.raises(DeployError) as refused, site_lock(tmp_path):
        pytest.fail("two at once")
    assert refused.value.findings[0].reference == "site-locked"
    assert f"process {os.getpid()}" in str(refused.value)
    assert refused.value.exit_code == ExitCode.BAD_INPUT


def test_it_is_free_afterwards_and_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x"), site_lock(tmp_path):
        raise ValueError("x")
    with site_lock(tmp_path):
        pass


def test_a_lock_without_a_legible_holder_still_refuses(tmp_path: Path) -> None:
    with site_lock(tmp_path):
        (tmp_path / "lock").write_text("?")
        with pytest.raises(DeployError, match="another run"), site_lock(tmp_path):
            pytest.fail("two at once")


def test_a_killed_holder_leaves_it_free_and_children_do_not_inherit_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(DeployError, match=f"process {holder.pid}"), site_lock(tmp_path):
            pytest.fail("two at once")
        holder.kill()
        holder.wait()
    with site_lock(tmp_path):
        child = subprocess.Popen(["sleep", "60"])
    with site_lock(tmp_path):
        pass
    child.kill()
    child.wait()


@pytest.mark.parametrize("call", ["open", "write"])
def test_what_keeps_it_from_being_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with (
            pytest.raises(DeployError, match=r"No space left on device \[site-not-writable\]"),
            site_lock(tmp_path),
        ):
            pytest.fail("not held")
    with site_lock(tmp_path):
        pass

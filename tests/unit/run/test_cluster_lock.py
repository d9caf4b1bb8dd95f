"""The lock on a controller; a local shell is the connection, and a directory the controller."""

import json
import math
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from deploy.errors import DeployError, ExitCode
from deploy.run import cluster_lock as module
from deploy.run.cluster_lock import cluster_lock
from deploy.run.ssh import Login
from deploy.site.inventory import Host

_SSH = '#!/bin/sh\nfor last; do :; done\nPATH={place}:$PATH exec sh -c "$last"\n'
_SUDO = '#!/bin/sh\nshift\nexec "$@"\n'
_HOLDER = """
import sys, time
from pathlib import Path
from deploy.run import cluster_lock
from tests.unit.run.test_cluster_lock import controller, lock
cluster_lock._PATH = sys.argv[2]
cluster_lock._POWER = {"lock": sys.argv[2] + ".nodes", "program": "/none"}
with lock(controller(Path(sys.argv[1]))):
    print("held", flush=True)
    time.sleep(600)
"""


def controller(place: Path, name: str = "ctl1", **connection: object) -> Host:
    for program, text in (("ssh", _SSH.format(place=place)), ("sudo", _SUDO)):
        path = place / program
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    said = {"ansible_ssh_executable": str(place / "ssh"), **connection}
    return Host(name, said, frozenset(), connection=said)


def lock(*controllers: Host, lost: list[str] | None = None) -> AbstractContextManager[module.Held]:
    return cluster_lock(controllers, Login(), Path("/sites/one"), (lost if lost is not None else []).append)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the lock is."""
    monkeypatch.setattr(module, "_PATH", str(tmp_path / "deploy.lock"))
    monkeypatch.setattr(module, "_POWER", {"lock": str(tmp_path / "nodes.lock"), "program": "/none"})
    return tmp_path / "deploy.lock"


def test_the_second_is_refused_and_learns_who_holds_it_and_since_when(tmp_path: Path, path: Path) -> None:
    host = controller(tmp_path)
    with lock(host) as held:
        assert held == module.Held()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(DeployError) as refused, lock(host):
            pytest.fail("two at once")
    (finding,) = refused.value.findings
    assert (finding.where, finding.reference) == ("ctl1", "cluster-locked")
    assert (os.environ.get("USER", "") + "@") in finding.message
    assert "(site /sites/one) is at work on this cluster since 20" in finding.message
    assert refused.value.exit_code is ExitCode.BAD_INPUT
    with lock(host):
        pass


@pytest.mark.parametrize("is_alone", [True, False])
def test_no_node_is_switched_off_from_the_moment_that_a_run_goes_on(
    tmp_path: Path,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_alone: bool,  # noqa: FBT001
) -> None:
    """Be it one that changes nothing, beside others: Slurm is told when its lock is held."""
    program, nodes, seen = tmp_path / "power-saving", tmp_path / "nodes.lock", tmp_path / "seen"
    program.write_text(f"#!/bin/sh\nflock --nonblock {nodes} true || echo held, $# arguments >> {seen}\n")
    program.chmod(0o755)
    monkeypatch.setattr(module, "_POWER", {"lock": str(nodes), "program": str(program)})
    host = controller(tmp_path)
    with module.nodes_left_on([host], Login()):
        assert seen.read_text() == "held, 0 arguments\n"
        assert not path.exists()
        with lock(host) if is_alone else module.nodes_left_on([host], Login()):
            assert seen.read_text() == "held, 0 arguments\n" * 2
        subprocess.run(["flock", "--nonblock", str(path), "true"], check=True)
    subprocess.run(["flock", "--nonblock", str(nodes), "true"], check=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_is_free_when_its_holder_is_gone(tmp_path: Path, path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-c", _HOLDER, str(tmp_path), str(path)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(DeployError, match="at work"), lock(controller(tmp_path)):
            pytest.fail("two at once")
        holder.send_signal(number)
        holder.wait()
    # The kernel frees it when the other end has noticed.
    subprocess.run(["flock", str(path), "true"], check=True, timeout=60)
    with lock(controller(tmp_path)):
        pass


def test_it_is_free_when_nothing_comes_any_more(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is there, and nobody at its other end."""
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.1)
    with lock(controller(tmp_path)):
        subprocess.run(["flock", str(path), "true"], check=True, timeout=60)


def test_a_run_learns_that_it_lost_the_lock(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0)
    lost: list[str] = []
    with lock(controller(tmp_path), lost=lost):
        subprocess.run(["flock", str(path), "true"], check=True, timeout=60)
        while not lost:
            pass
    assert lost == ["ctl1"]


@pytest.mark.parametrize(("patience", "runs_lost"), [((90, 0), 0), ((0, 0), 1)])
def test_a_run_goes_on_as_long_as_one_controller_holds_the_lock(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch, patience: tuple[int, int], runs_lost: int
) -> None:
    """The lock of the second is at another place, as on another machine."""
    monkeypatch.setattr(module, "_BEAT_SECONDS", 0.01)
    program, beat = module._program, module._beat
    locks = iter(zip((path, tmp_path / "second.lock"), patience, strict=True))
    ended: list[str] = []
    lost: list[str] = []

    def program_of_each(verb: str, **said: object) -> bytes:
        place, seconds = next(locks)
        monkeypatch.setattr(module, "_PATIENCE_SECONDS", seconds)
        return program(verb, **{**said, "path": str(place)})

    def beat_to_the_end(*said: Any) -> None:  # noqa: ANN401 - as they are
        beat(*said)
        ended.append(said[2])

    monkeypatch.setattr(module, "_program", program_of_each)
    monkeypatch.setattr(module, "_beat", beat_to_the_end)
    with lock(controller(tmp_path), controller(tmp_path, "ctl2"), lost=lost):
        while len(ended) < patience.count(0):
            pass
        assert len(lost) == runs_lost


@pytest.mark.usefixtures("path")
def test_a_machine_that_was_asleep_sends_its_line_as_soon_as_it_wakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clocks that stand still meanwhile would have it wait."""
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(module, "_BEAT_SECONDS", 3600)
    sent, slept = threading.Event(), 0.0
    monkeypatch.setattr(module, "_awake_or_asleep", lambda: time.monotonic() + slept)
    write = module._write

    def noted(connection: "subprocess.Popen[bytes]", text: bytes) -> bool:
        if text == b"\n":
            sent.set()
        return write(connection, text)

    monkeypatch.setattr(module, "_write", noted)
    with lock(controller(tmp_path)):
        assert not sent.wait(0.5)
        slept = 3600.0
        assert sent.wait(60)


@pytest.mark.usefixtures("path")
def test_of_several_controllers_none_stays_locked_where_one_refuses(tmp_path: Path) -> None:
    """The same lock twice: the second refuses, and the first is free again."""
    host = controller(tmp_path)
    with pytest.raises(DeployError), lock(host, host):
        pytest.fail("two at once")
    with lock(host):
        pass


def test_a_controller_that_cannot_be_asked_holds_nobody_back(tmp_path: Path, path: Path) -> None:
    dead = controller(tmp_path, "dead", ansible_ssh_executable="/bin/false")
    missing = controller(tmp_path, "ctl3", ansible_python_interpreter="/no/such/python")
    by_password = controller(tmp_path, "ctl2", ansible_connection="winrm")
    with lock(dead, by_password, missing) as held:
        by_choice, silent, unstarted = held.unasked
    assert (by_choice, silent) == ("ctl2: ansible_connection is winrm", "dead: it gave no answer")
    assert unstarted.startswith("ctl3: it gave no answer: ")
    assert "/no/such/python" in unstarted
    assert not path.exists()


def test_where_one_controller_holds_it_a_silent_one_is_not_missed(tmp_path: Path, path: Path) -> None:
    dead = controller(tmp_path, "dead", ansible_ssh_executable="/bin/false")
    with lock(dead, controller(tmp_path)) as held:
        assert held.unasked == ()
        assert path.exists()


def test_what_a_holder_left_there_cannot_break_the_message(tmp_path: Path, path: Path) -> None:
    host = controller(tmp_path)
    with lock(host):
        for content in ("?", "[]", json.dumps({"who": "a\x1b[31m\nb", "site": "s", "since": "never"})):
            path.write_text(content)
            with pytest.raises(DeployError, match=r"(somebody|a ?b \(site s\)) is at work"), lock(host):
                pytest.fail("two at once")


def test_whoever_gets_it_learns_when_the_one_before_let_go(tmp_path: Path, path: Path) -> None:
    """What hosts said before that may not be so any more."""
    host = controller(tmp_path)
    with lock(host) as first:
        os.utime(path, (0, 0))
    with lock(host) as second:
        pass
    os.utime(path, (path.stat().st_mtime - 3600,) * 2)
    with lock(host) as third:
        pass
    assert first.idle == math.inf
    assert 0 <= second.idle < 1800 <= third.idle < math.inf

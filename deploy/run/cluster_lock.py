"""One run per cluster at a time, from whatever machine and copy of the site: a lock on its controllers."""

import getpass
import json
import math
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from deploy.errors import error
from deploy.run import holder
from deploy.run.message import one_line
from deploy.run.ssh import Login, NotByPlainSshError, command
from deploy.site.inventory import Host

_PATH = "/run/deploy.lock"
_POWER = {"lock": "/run/deploy-nodes.lock", "program": "/usr/local/sbin/deploy-power-saving"}
"""Where Slurm switches nodes off it leaves them on while a run has its share of that lock: the role slurmctld
has the program there."""
_CHUNK = 4096
_MARK = b"deploy:"
_ANSWER_SECONDS = 60
_BEAT_SECONDS = 20
_LOOK_SECONDS = 1
_END_SECONDS = 5
# Longer than a connection without its network lasts (keepalive.py).
_PATIENCE_SECONDS = 90
_PROGRAM = "import sys; exec(sys.stdin.readline().encode().decode('unicode_escape'))"


@dataclass(frozen=True)
class Held:
    """A lock that is held: ``unasked`` says of controllers why they could not be asked for theirs.

    That one gave no answer is said where none holds it.

    ``idle`` is how many seconds ago another run let go of one of them, infinite where none is known.
    """

    unasked: tuple[str, ...] = ()
    idle: float = math.inf


@dataclass(frozen=True)
class _Answered:
    """What one controller says: since when nobody held it, or why there is no answer."""

    idle: float = math.inf
    why: str = ""


@contextmanager
def cluster_lock(
    controllers: Sequence[Host], login: Login, site: Path, on_lost: Callable[[str], None]
) -> Iterator[Held]:
    """Holds the lock of a cluster on each of its controllers.

    A controller that does not answer holds nobody back: what a run needs of it, the run itself will say.
    ``on_lost`` is called once, in another thread, when the connection to the last one that holds it has
    ended, with that controller's name: as long as one holds it, no other run begins.
    Raises DeployError ``cluster-locked``.
    """
    mine = {"who": f"{getpass.getuser()}@{socket.gethostname()}", "site": str(site), "since": time.time()}
    unasked, silent, idle = [], [], [math.inf]
    holding: set[str] = set()
    is_lost = threading.Event()

    def lost(controller: str) -> None:
        holding.discard(controller)
        if not holding and not is_lost.is_set():
            is_lost.set()
            on_lost(controller)

    with ExitStack() as held:
        for controller in controllers:
            try:
                words = command(controller, login, ("-IS", "-c", _PROGRAM))
            except NotByPlainSshError as problem:
                unasked.append(f"{controller.name}: {problem}")
                continue
            program = _program("hold", path=_PATH, holder=mine)
            answered = held.enter_context(_held(controller.name, words, program, holding.add, lost))
            idle.append(answered.idle)
            silent += [f"{controller.name}: {answered.why}"] * bool(answered.why)
        # Whoever else comes asks all of them, so that one is enough.
        yield Held((*unasked, *(() if holding else silent)), min(idle))


@contextmanager
def nodes_left_on(controllers: Sequence[Host], login: Login) -> Iterator[None]:
    """Has Slurm switch no node off meanwhile, which runs that change the cluster have by its lock."""
    with ExitStack() as held:
        for controller in controllers:
            with suppress(NotByPlainSshError):
                words = command(controller, login, ("-IS", "-c", _PROGRAM))
                program = _program("leave_on")
                held.enter_context(_held(controller.name, words, program, lambda _: None, lambda _: None))
        yield


@contextmanager
def _held(
    name: str,
    words: list[str],
    program: bytes,
    on_held: Callable[[str], None],
    on_lost: Callable[[str], None],
) -> Iterator[_Answered]:
    pipe = subprocess.PIPE
    # Of its own session: Ctrl-C is for the run, which needs the lock until it has stopped.
    with (
        TemporaryFile() as errors,
        subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=errors, start_new_session=True) as connection,
    ):
        assert connection.stdin  # noqa: S101 - it was asked for
        is_over = threading.Event()
        try:
            _write(connection, program)
            answer = _answer(connection)
            if answer and answer["held_by"] is not None:
                raise _locked(name, answer["held_by"])
            if answer:
                on_held(name)
                beat = threading.Thread(target=_beat, args=(connection, is_over, name, on_lost), daemon=True)
                beat.start()
                yield _Answered(math.inf if answer["idle"] is None else float(answer["idle"]))
            else:
                said = os.pread(errors.fileno(), _CHUNK, 0).decode(errors="replace").strip().splitlines()[-1:]
                yield _Answered(why=": ".join(["it gave no answer", *map(one_line, said)]))
        finally:
            is_over.set()
            _end(connection)


def _end(connection: subprocess.Popen[bytes]) -> None:
    """Comes back when the lock is free, so that the next run finds it so."""
    try:
        connection.communicate(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        connection.kill()


def _program(verb: str, **arguments: object) -> bytes:
    """The text of the program, on one line: the input behind it is what keeps it alive."""
    source = Path(holder.__file__).read_text(encoding="utf-8")
    arguments |= {"patience": _PATIENCE_SECONDS, "power": _POWER}
    text = f"{source}\n\n{verb}(**json.loads({json.dumps(arguments)!r}))\n"
    return text.encode("unicode_escape") + b"\n"


def _write(connection: subprocess.Popen[bytes], text: bytes) -> bool:
    assert connection.stdin  # noqa: S101 - it was asked for
    try:
        connection.stdin.write(text)
        connection.stdin.flush()
    except (OSError, ValueError):  # of a pipe that is broken, or closed by now
        return False
    return connection.poll() is None


def _answer(connection: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """What the controller says; None where it says nothing."""
    assert connection.stdout  # noqa: S101 - it was asked for
    until = time.monotonic() + _ANSWER_SECONDS
    said = b""
    while select.select([connection.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
        part = os.read(connection.stdout.fileno(), _CHUNK)
        said += part
        lines = said.split(b"\n")
        line = next((line for line in lines[:-1] if line.startswith(_MARK)), None)
        if line is not None:
            answer: dict[str, Any] = json.loads(line.removeprefix(_MARK))
            return answer
        if not part:
            break
    return None


def _beat(
    connection: subprocess.Popen[bytes],
    is_over: threading.Event,
    name: str,
    on_lost: Callable[[str], None],
) -> None:
    """A line now and then; the connection's end is noticed at once, also after this machine was asleep."""
    sent = _awake_or_asleep()
    while not is_over.wait(_LOOK_SECONDS):
        is_due = _awake_or_asleep() - sent >= _BEAT_SECONDS
        if connection.poll() is not None or (is_due and not _write(connection, b"\n")):
            if not is_over.is_set():
                on_lost(name)
            return
        if is_due:
            sent = _awake_or_asleep()


def _awake_or_asleep() -> float:
    """Seconds of a clock that also goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _locked(name: str, held_by: Mapping[str, Any]) -> Exception:
    who = f"{held_by['who']} (site {held_by['site']})" if {"who", "site"} <= held_by.keys() else "somebody"
    since = held_by.get("since")
    moment = datetime.fromtimestamp(since).astimezone() if isinstance(since, int | float) else None
    when = f" since {moment:%Y-%m-%d %H:%M:%S}" if moment else ""
    return error(
        "cluster-locked",
        f"{one_line(who)} is at work on this cluster{when}; nothing was changed",
        where=name,
        hint="wait until that run has ended, then type the same again",
    )

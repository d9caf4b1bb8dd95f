"""Stands between ``deploy`` and ansible-playbook, so that nothing outlives the run that started it.

Ansible's workers leave their process group and ssh masters become daemons: killing the group, as
ansible-runner does, misses them. It is the reaper of all its descendants, wherever they went, and
the kernel tells it when ``deploy`` dies.

Run as a script of its own with the standard library alone: it must start fast and import nothing.

    reaper.py PARENT_PID PID_FILE SCRATCH_DIRECTORY COMMAND...

SIGINT asks the command to stop (SIGINT, the same again, then SIGTERM to all, then SIGKILL to all); SIGTERM
kills all at once.
When the parent dies all is killed and the scratch directory, which may hold secrets, is removed.
"""

import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import struct
import sys
import termios
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PARENT_DIED = signal.SIGUSR1
_FIRST_SECONDS = 3.0
_POLITE_SECONDS = 7.0
_TERM_SECONDS = 3.0
_KILL_SECONDS = 10.0
_COLUMNS = 10_000
_ABANDONED = {signal.SIGHUP, _PARENT_DIED}
_WATCHED = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, *_ABANDONED}
_NO_COMMAND = 127


def main(arguments: list[str]) -> int:
    """Run the command to its end; its exit code becomes ours."""
    parent, pid_file, scratch, *command = arguments
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, _PARENT_DIED)
    if os.getppid() != int(parent):
        shutil.rmtree(scratch, ignore_errors=True)
        return 1
    _widen_terminal()
    Path(pid_file).write_text(str(os.getpid()), encoding="ascii")
    child = os.fork()
    if child == 0:
        _become(command)
    return _watch(child, Path(scratch))


def _become(command: list[str]) -> None:
    """In the child: die with the reaper, read nothing from the terminal, be the command."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # ansible-runner starts us with hangups ignored, which the command would inherit.
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    try:
        os.execvp(command[0], command)  # noqa: S606 - a list without a shell is the point
    except OSError as problem:
        os.write(1, f"cannot start {command[0]}: {problem.strerror}\n".encode())
    os._exit(_NO_COMMAND)


def _watch(child: int, scratch: Path) -> int:
    """Wait for the child and for orders; returns the child's exit code."""
    deadline: float | None = None
    # Python loses a KeyboardInterrupt that is raised in what it calls around a fork (os.register_at_fork);
    # Ansible forks for every task of every host.
    escalation = iter(
        ((signal.SIGINT, _POLITE_SECONDS), (signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, 1.0))
    )
    stopping = False
    while True:
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        number = _next_signal(patience)
        if number == signal.SIGCHLD:
            code = _reap(child)
            # The parent's death hangs the terminal up, which ends the command as well.
            if code is not None and not signal.sigpending() & _ABANDONED:
                if stopping:
                    _sweep()
                return code
        elif number in _ABANDONED:
            _kill_all()
            shutil.rmtree(scratch, ignore_errors=True)
            return 1
        elif number == signal.SIGTERM:
            _kill_all()
            return 128 + signal.SIGKILL
        elif number == signal.SIGINT and not stopping:
            stopping = True
            _send(child, signal.SIGINT)
            deadline = time.monotonic() + _FIRST_SECONDS
        elif number is None:
            order, seconds = next(escalation, (signal.SIGKILL, 1.0))
            for pid in [child] if order == signal.SIGINT else _descendants():
                _send(pid, order)
            deadline = time.monotonic() + seconds


def _next_signal(patience: float | None) -> int | None:
    if patience is None:
        return signal.sigwait(_WATCHED)
    received = signal.sigtimedwait(_WATCHED, patience)
    return received.si_signo if received else None


def _reap(child: int) -> int | None:
    """Collect the dead; the exit code of ``child`` when it is among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            result = os.waitstatus_to_exitcode(status)
            code = result if result >= 0 else 128 - result


def _sweep() -> None:
    """After a polite stop: whoever is left gets a moment, then is killed."""
    deadline = time.monotonic() + _TERM_SECONDS
    for pid in _descendants():
        _send(pid, signal.SIGTERM)
    while _descendants() and time.monotonic() < deadline:
        signal.sigtimedwait({signal.SIGCHLD}, 0.1)
        _reap(0)
    _kill_all()


def _kill_all() -> None:
    """Kill every descendant; those orphaned meanwhile become our children and are met in the next round."""
    deadline = time.monotonic() + _KILL_SECONDS
    while (remaining := _descendants()) and time.monotonic() < deadline:
        for pid in remaining:
            _send(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.05)
        _reap(0)


def _descendants() -> list[int]:
    """All living descendants, from the process table."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The name in parentheses may hold anything; the fields begin after the last one.
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                state, parent = stat.rpartition(")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        above = queue.pop()
        below = [pid for pid, parent in parents.items() if parent == above]
        found += below
        queue += below
    return found


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


def _widen_terminal() -> None:
    """Ansible breaks its messages at the terminal's width: let it be wide."""
    with contextlib.suppress(OSError):
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 100, _COLUMNS, 0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

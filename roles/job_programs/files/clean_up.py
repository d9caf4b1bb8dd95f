#!/usr/bin/python3 -I
"""Ends what a user left on a node outside of Slurm's control, when his last job there has ended.

``clean_up.py [--keep-user NAME] [--keep-group NAME] DIRECTORY ...``: his processes in no job, and his files
in the directories. Accounts of the system, and those that are kept, are left alone, and so is a user of whom
another job runs here, or of whom Slurm does not say whether one does.
"""

from __future__ import annotations

import argparse
import grp
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")
_FIRST_USER = 1000
_NOBODY = 65534
_ROUNDS = 5
_AT_ONCE = 500
_SECONDS_TO_END = 2.0
_SECONDS_FOR_SLURM = 15
_LIVE = "RUNNING,SUSPENDED,CONFIGURING,STOPPED,SIGNALING,STAGE_OUT"
_OF_SLURM = re.compile(
    r"^\d+:[^:]*:(?!.*/user\.slice/)(?:.*/job_\d+|.*[/_]slurmstepd\.scope|.*/slurmd\.service)(?:/|$)",
    re.MULTILINE,
)
"""In a process's cgroups: that of a job, or of slurmd itself and what prologs run as a user.

Below user.slice users make groups of any name. From Slurm 26.05 on, directories of cgroups v2 no longer have
the numbers of jobs.
"""


class Process(NamedTuple):
    """A process; when it ``began``, in clock ticks since the machine did, tells it from a later one."""

    pid: int
    began: int


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 where something stays that should not, with why."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep-user", action="append", default=[])
    parser.add_argument("--keep-group", action="append", default=[])
    parser.add_argument("directories", nargs="*")
    given = parser.parse_args(arguments)
    uid = int(os.environ["SLURM_JOB_UID"])
    if uid < _FIRST_USER or uid == _NOBODY or is_kept(uid, given.keep_user, given.keep_group):
        return 0
    for attempt in range(_ROUNDS):
        moment = _ticks()
        found = list(leftovers(uid))
        if not found and not any(_files(uid, given.directories, time.time())):
            return 0
        now = time.time()
        if has_other_jobs(uid):
            return 0
        # What began since may be of a job that began since.
        found = [process for process in found if process.began <= moment][:_AT_ONCE]
        if not found:
            remove_files(uid, given.directories, now)
            return 0
        end(uid, found, signal.SIGKILL if attempt else signal.SIGTERM)
    stay = ", ".join(str(process.pid) for process in leftovers(uid))
    if stay:
        sys.stdout.write(f"processes of uid {uid} do not end: {stay}\n")
    return 1 if stay else 0


def is_kept(uid: int, users: Sequence[str], groups: Sequence[str]) -> bool:
    """Whether an account may work here without a job; one that is not known is kept, too."""
    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        return True
    names = set()
    for number in os.getgrouplist(account.pw_name, account.pw_gid):
        with suppress(KeyError):
            names.add(grp.getgrgid(number).gr_name)
    return account.pw_name in users or not names.isdisjoint(groups)


def has_other_jobs(uid: int) -> bool:
    """Whether another job of the user runs here. Raises SystemExit where Slurm is silent."""
    command = ["squeue", "--noheader", f"--nodelist={os.environ['SLURMD_NODENAME']}", f"--user={uid}"]
    command += [f"--states={_LIVE}", "--format=%A"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS_FOR_SLURM,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        sys.exit(f"nothing was ended, Slurm does not answer: {problem}")
    if done.returncode:
        sys.exit(f"nothing was ended, Slurm does not answer: {done.stderr.strip()}")
    return bool(done.stdout.strip())


def leftovers(uid: int) -> Iterator[Process]:
    """The user's processes that belong to no job."""
    for place in _PROC.iterdir():
        if place.name.isdigit():
            process = _leftover(place, uid)
            if process:
                yield process


def _leftover(place: Path, uid: int) -> Process | None:
    with suppress(OSError, IndexError, ValueError):
        status = (place / "status").read_text(encoding="utf-8", errors="replace")
        ids = re.search(r"^Uid:\s+(\d+)\s+(\d+)\s+(\d+)", status, re.MULTILINE)
        is_dead = re.search(r"^State:\s+[ZX]", status, re.MULTILINE)
        if not ids or str(uid) not in ids.groups() or is_dead:
            return None
        if _OF_SLURM.search((place / "cgroup").read_text(encoding="utf-8", errors="replace")):
            return None
        fields = (place / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return Process(int(place.name), int(fields[19]))
    return None


def _ticks() -> int:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def end(uid: int, processes: Sequence[Process], number: signal.Signals) -> None:
    """Signals them and waits for a while; a number that is another process's by now is left alone."""
    handles = []
    for process in processes:
        with suppress(OSError):
            handle = os.pidfd_open(process.pid)
            handles.append(handle)
            if _leftover(_PROC / str(process.pid), uid) == process:
                signal.pidfd_send_signal(handle, number)
    waiting = select.poll()
    for handle in handles:
        waiting.register(handle, select.POLLIN)
    ended: set[int] = set()
    deadline = time.monotonic() + _SECONDS_TO_END
    while len(ended) < len(handles) and (left := deadline - time.monotonic()) > 0:
        for handle, _ in waiting.poll(left * 1000):
            ended.add(handle)
            waiting.unregister(handle)
    for handle in handles:
        os.close(handle)


def _files(uid: int, directories: Sequence[str], before: float) -> Iterator[Path]:
    for directory in directories:
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if found.st_uid == uid and found.st_ctime < before:
                        yield Path(entry.path)


def remove_files(uid: int, directories: Sequence[str], before: float) -> None:
    """Removes them as the user himself: nothing that he prepared leads root anywhere."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setgroups([])
        os.setgid(pwd.getpwuid(uid).pw_gid)
        os.setuid(uid)
        for path in list(_files(uid, directories, before)):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
    finally:
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/python3 -I
"""Slurm's Prolog and Epilog: runs a site's programs in their order, as root, and tells Slurm how it went.

Which of both it is, the name says by which it is started. Exit code 1 makes Slurm drain the node; after 0 the
job goes on. What failed is in the system's log, and in slurmd's own where the node is drained.
"""

from __future__ import annotations

import grp
import json
import os
import re
import signal
import stat
import subprocess
import sys
import syslog
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

SETTINGS = Path("/etc/job_programs")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OF_SLURM = re.compile(
    r"SLURMD?_\w+|CUDA_VISIBLE_DEVICES|CUDA_MPS_\w+|GPU_DEVICE_ORDINAL|ROCR_VISIBLE_DEVICES|ZE_AFFINITY_MASK"
)
"""What Slurm itself sets. SPANK_ is what users set; nothing of it reaches a program that root runs."""
_SECONDS_FOR_SLURM = 15.0
_SECONDS_TO_DIE = 0.5
_KEPT_OUTPUT = 4096
_LONGEST_REASON = 400
_MOST_RESTARTS = 3
"""After so many a job that is requeued is held: what fails for it seems to do so everywhere."""


class Outcome(NamedTuple):
    """How a program ended: ``problem`` is empty where it did well, ``said`` is the end of what it said."""

    problem: str
    said: str

    def __str__(self) -> str:
        return f"{self.problem}: {self.said}" if self.said else self.problem


class SlurmError(Exception):
    """Slurm's controller did not answer, or refused."""


def main(kind: str) -> int:
    """Runs the programs of ``kind``, prolog or epilog; returns what tells Slurm what to do."""
    environment = environment_of_programs(os.environ)
    job = environment.get("SLURM_JOB_ID", "")
    os.chdir("/")
    os.umask(0o022)
    syslog.openlog(f"slurm-{kind}")
    for program in read_programs(kind):
        outcome = run(program, environment)
        if not outcome.problem or was_taken_away(kind, program):
            continue
        meaning = program["on_failure"]
        words = f"{program['name']} of job {job} {outcome}"
        syslog.syslog(syslog.LOG_ERR, f"{words} ({meaning})")
        sys.stdout.write(f"{words}\n")
        if meaning == "ignore":
            continue
        try:
            if meaning == "requeue":
                syslog.syslog(syslog.LOG_NOTICE, f"job {job} {send_back(job, environment)}")
                return 0
            drain(kind, f"{program['name']}: {outcome}", environment)
        except SlurmError as problem:
            syslog.syslog(syslog.LOG_ERR, f"Slurm could not be asked, the node is drained: {problem}")
        return 1
    return 0


def read_programs(kind: str) -> list[dict[str, Any]]:
    """The programs in their order; none where the node was not told of any."""
    try:
        found: list[dict[str, Any]] = json.loads((SETTINGS / f"{kind}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return found


def was_taken_away(kind: str, program: dict[str, Any]) -> bool:
    """Whether a program is gone because the site does not want it any more, since this began."""
    return not Path(program["command"][0]).exists() and program not in read_programs(kind)


def environment_of_programs(given: Any) -> dict[str, str]:  # noqa: ANN401 - os.environ, or a dictionary
    """What Slurm says of the job, and nothing that leads a program elsewhere."""
    own = {"PATH": _PATH, "LC_ALL": "C.UTF-8", "HOME": "/root"}
    return {name: value for name, value in given.items() if _OF_SLURM.fullmatch(name)} | own


def run(program: dict[str, Any], environment: dict[str, str]) -> Outcome:
    """Runs one program, for no longer than it may; what it started goes with it at the end of that time."""
    command = program["command"]
    if problem := why_not_trusted(Path(command[0])):
        return Outcome(problem, "")
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except OSError as problem_of_start:
        return Outcome(f"does not start: {problem_of_start.strerror}", "")
    output = bytearray()
    # What runs on in the background may keep the pipe open for ever.
    reader = threading.Thread(target=_read, args=(process.stdout, output), daemon=True)
    reader.start()
    try:
        code = process.wait(program["seconds"])
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_DIE)
        problem = f"took longer than {program['seconds']} s"
    else:
        ended = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
        problem = ended if code else ""
    reader.join(_SECONDS_TO_DIE)
    return Outcome(problem, last_lines(bytes(output)))


def _read(pipe: Any, output: bytearray) -> None:  # noqa: ANN401 - a pipe of subprocess
    with suppress(OSError), pipe:
        while piece := os.read(pipe.fileno(), _KEPT_OUTPUT):
            output += piece
            del output[:-_KEPT_OUTPUT]


def last_lines(output: bytes) -> str:
    """The end of an output, on one line and without what would write elsewhere in a log."""
    text = output.decode("utf-8", "replace")
    lines = [
        "".join(char if char.isprintable() else "?" for char in line.strip()) for line in text.splitlines()
    ]
    return " / ".join([line for line in lines if line][-3:])[-_LONGEST_REASON:]


def why_not_trusted(path: Path) -> str:
    """Why root does not run a program; empty where nobody but root can change it, or what it lies in."""
    try:
        path.stat()
        for place in _on_the_way(path):
            found = place.stat()
            by_group = found.st_mode & stat.S_IWGRP and not _is_roots(found.st_gid)
            if found.st_uid != 0 or found.st_mode & stat.S_IWOTH or by_group:
                return f"is not run: others than root can change {place}"
    except OSError as problem:
        return f"is not there: {path}: {problem.strerror}"
    return ""


def _on_the_way(path: Path) -> Iterator[Path]:
    """A file and the directories on the way to it, those among them in which links lie that lead there."""
    for place in (path, *path.parents):
        if place.is_symlink():
            yield from _on_the_way(place.parent / place.readlink())
        else:
            yield place


def _is_roots(gid: int) -> bool:
    """Whether a group is root's, or the one to which Debian gives /usr/local."""
    if gid == 0:
        return True
    with suppress(KeyError):
        return grp.getgrgid(gid).gr_name == "staff"
    return False


def drain(kind: str, words: str, environment: dict[str, str]) -> None:
    """Gives the drain a reason of more words than Slurm's own, "Prolog error". Raises SlurmError."""
    reason = f"{kind.capitalize()} error : {words}"[:_LONGEST_REASON]
    node = environment.get("SLURMD_NODENAME", "")
    _slurm(environment, "scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")


def send_back(job: str, environment: dict[str, str]) -> str:
    """Has Slurm start the job anew, later; returns what became of it. Raises SlurmError.

    One that cannot begin anew ends; one that was sent back again and again is held.
    """
    shown = _slurm(environment, "scontrol", "--oneliner", "show", "job", job)
    facts = dict(re.findall(r"(?:^|\s)(BatchFlag|Requeue|Restarts)=(\d+)", shown))
    if facts.get("BatchFlag") != "1" or facts.get("Requeue") != "1":
        _slurm(environment, "scancel", job)
        return "is ended: it cannot be requeued"
    if int(facts.get("Restarts", "0")) >= _MOST_RESTARTS:
        _slurm(environment, "scontrol", "requeuehold", job)
        return f"is requeued and held: it was started anew {facts['Restarts']} times"
    _slurm(environment, "scontrol", "requeue", job)
    return "is requeued"


def _slurm(environment: dict[str, str], *command: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS_FOR_SLURM,
            env=environment,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise SlurmError(str(problem)) from None
    if done.returncode:
        raise SlurmError((done.stderr or done.stdout).strip())
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[0]).name))

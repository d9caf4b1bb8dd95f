"""A job has a $TMPDIR that nobody else sees, and nothing of it is left when the job has ended."""

import re
import time
from collections.abc import Callable

from molecule.conftest import MACHINES, Converge, On

BASE = "/local/scratch"


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.3)


def as_user(on: On, machine: str, user: str, *words: str) -> str:
    options = ["timeout", "30", "setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
    return on(machine, *options, "env", f"USER={user}", "HOME=/", *words).stdout


def job(on: On, machine: str, script: str, *, user: str = "alice") -> str:
    return as_user(on, machine, user, "srun", "--quiet", "--chdir=/", "--mem=100", "sh", "-c", script)


def left(on: On, machine: str) -> str:
    """The files of jobs that are there."""
    return on(machine, "find", BASE, "-name", "of-a-job*").stdout


def test_a_job_has_a_temporary_directory_and_nothing_of_it_stays(on: On, idle: str) -> None:
    fill = "touch $TMPDIR/of-a-job /dev/shm/of-a-job; chmod 700 $TMPDIR/of-a-job; echo $TMPDIR; ls -A $TMPDIR"
    assert job(on, idle, fill).split() == ["/tmp", "of-a-job"]
    assert on(idle, "find", "/tmp", "/dev/shm", "-name", "of-a-job").stdout == ""
    wait_for(lambda: left(on, idle) == "")


def test_all_steps_of_a_job_share_it_and_other_jobs_do_not_see_it(on: On, idle: str) -> None:
    lines = ["touch $TMPDIR/of-a-job-in-a-script", "srun --mem=0 ls -A $TMPDIR > /var/tmp/seen", "sleep 60"]
    script = "\n".join(["#!/bin/sh", *lines, ""])
    on(idle, "rm", "-f", "/var/tmp/seen")
    on(idle, "tee", "/usr/local/lib/script", data=script)
    options = ["--parsable", "--chdir=/", "--output=/dev/null", "--mem=100"]
    first = as_user(on, idle, "alice", "sbatch", *options, "/usr/local/lib/script").strip()
    try:
        wait_for(lambda: on(idle, "cat", "/var/tmp/seen", check=False).stdout == "of-a-job-in-a-script\n")
        assert left(on, idle).count("of-a-job-in-a-script") == 1
        assert job(on, idle, "ls -A /tmp", user="bob") == ""
        assert job(on, idle, f"ls {BASE}/* 2>&1 || true", user="bob").count("of-a-job") == 0
    finally:
        on(idle, "scancel", first)
    wait_for(lambda: left(on, idle) == "")


def test_a_batch_script_has_the_variables_of_people(on: On, idle: str) -> None:
    on(idle, "rm", "-f", "/var/tmp/variables")
    wrap = "--wrap=echo $WORK $TMPDIR > /var/tmp/variables"
    as_user(on, idle, "alice", "sbatch", "--chdir=/", "--mem=100", "--output=/dev/null", wrap)
    wait_for(lambda: on(idle, "cat", "/var/tmp/variables", check=False).stdout != "")
    assert on(idle, "cat", "/var/tmp/variables").stdout == "/work/alice /tmp\n"


def test_what_a_job_left_that_no_longer_runs_is_removed_when_slurmd_starts(on: On, idle: str) -> None:
    """As after a power cut: the directory is there, the job's processes are not."""
    here = f"{BASE}/molecule-scratch-{idle}/999"
    on(idle, "systemctl", "stop", "slurmd")
    on(idle, "mkdir", "-p", f"{here}/.999")
    on(idle, "touch", f"{here}/.ns", f"{here}/.999/of-a-job-that-was-cut-off")
    on(idle, "systemctl", "start", "slurmd")
    wait_for(lambda: left(on, idle) == "")
    assert on(idle, "test", "-e", here, check=False).returncode == 1


def test_a_directory_inside_of_a_private_one_is_refused(on: On, converge: Converge) -> None:
    answer = converge(directory="/tmp/scratch")
    assert answer.returncode == 2, answer.stdout + answer.stderr
    said = (
        r"fatal: \[molecule-scratch-(\w+)\].*/tmp/scratch is inside of /tmp, which every job has of its own"
    )
    assert sorted(re.findall(said, answer.stderr)) == MACHINES
    assert on("trixie", "test", "-e", "/tmp/scratch", check=False).returncode == 1

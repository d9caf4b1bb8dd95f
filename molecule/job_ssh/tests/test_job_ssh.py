"""A login on a compute node is part of a job: refused without one, ended with it."""

import re
import time
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess

import pytest

from molecule.conftest import MACHINES, Converge, On

CONTROLLERS = ("memory", "devices", "freezer")


def ssh(on: On, machine: str, user: str, *command: str) -> CompletedProcess[str]:
    options = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=INFO"]
    return on(machine, "timeout", "30", "ssh", *options, f"{user}@localhost", *command, check=False)


def wait(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < deadline:
        time.sleep(0.3)
    return holds


@pytest.fixture
def job(on: On, machine: str) -> Iterator[str]:
    """A running job of alice."""
    as_alice = ["setpriv", "--reuid=alice", "--regid=alice", "--init-groups"]
    submit = [*as_alice, "sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--wrap=sleep 120"]
    number = on(machine, *submit).stdout.strip()
    assert wait(lambda: on(machine, "squeue", "--noheader", "--format=%T").stdout == "RUNNING\n")
    yield number
    on(machine, "scancel", number)
    assert wait(lambda: on(machine, "squeue", "--noheader").stdout == "")


def test_a_user_without_a_job_is_told_and_refused(on: On, machine: str) -> None:
    answer = ssh(on, machine, "alice", "id")
    assert answer.returncode == 255
    assert answer.stdout == ""
    assert "you have no active jobs on this node" in answer.stderr


def test_the_session_has_the_jobs_cgroup(on: On, machine: str, job: str) -> None:
    answer = ssh(on, machine, "alice", "cat", "/proc/self/cgroup")
    lines = [line.split(":", 2) for line in answer.stdout.splitlines()]
    places = {name: path for _, names, path in lines for name in names.split(",")}
    assert {name: f"job_{job}/" in places[name] for name in CONTROLLERS} == dict.fromkeys(CONTROLLERS, True)


def test_the_session_has_the_jobs_variables_and_an_admins_has_not(on: On, machine: str, job: str) -> None:
    told = "echo $WORK $TMPDIR"
    assert ssh(on, machine, "alice", told).stdout == f"/work/alice /tmp/{job}\n"
    assert ssh(on, machine, "bob", told).stdout == "\n"


def test_the_session_ends_with_the_job(on: On, machine: str, job: str) -> None:
    options = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]
    on(machine, "systemd-run", "--unit=session", "ssh", *options, "alice@localhost", "sleep 4711")
    assert wait(lambda: on(machine, "pgrep", "-f", "^sleep 4711", check=False).returncode == 0)
    on(machine, "scancel", job)
    assert wait(lambda: on(machine, "pgrep", "-f", "^sleep 4711", check=False).returncode != 0)
    assert wait(lambda: on(machine, "systemctl", "is-active", "session", check=False).stdout != "active\n")
    on(machine, "systemctl", "reset-failed", "session", check=False)
    assert ssh(on, machine, "alice", "id").returncode == 255


@pytest.mark.parametrize("admin", ["bob", "carol"])
def test_an_admin_is_let_in_and_belongs_to_no_job(on: On, machine: str, admin: str) -> None:
    answer = ssh(on, machine, admin, "cat", "/proc/self/cgroup")
    assert answer.returncode == 0, answer.stderr
    assert "job_" not in answer.stdout
    assert "/user.slice/" in answer.stdout


def test_a_job_lets_in_nobody_else(on: On, machine: str, job: str) -> None:
    assert ssh(on, machine, "alice", "true").returncode == 0, job
    assert ssh(on, machine, "dave", "true").returncode == 255


def test_whoever_runs_it_is_never_shut_out(on: On, converge: Converge) -> None:
    """dave, who is no admin, runs it where there is something to change."""
    for machine in MACHINES:
        on(machine, "sed", "-i", "s/ carol/ nobody/", "/etc/pam.d/sshd")
    answer = converge(connected_as="dave")
    changed = [on(machine, "grep", "--count", " nobody", "/etc/pam.d/sshd").stdout for machine in MACHINES]
    for machine in MACHINES:
        on(machine, "sed", "-i", "s/ nobody/ carol/", "/etc/pam.d/sshd")
    assert answer.returncode == 2, answer.stdout + answer.stderr
    refused = re.findall(
        r"fatal: \[molecule-job-ssh-(\w+)\].*'dave', the account that this run", answer.stderr
    )
    assert sorted(refused) == MACHINES
    assert changed == ["2\n"] * len(MACHINES)


def test_where_no_jobs_run_only_admins_are_let_in(on: On, converge: Converge) -> None:
    try:
        answer = converge(has_jobs=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        let_in = {
            (machine, user): ssh(on, machine, user, "true").returncode == 0
            for machine in MACHINES
            for user in ("alice", "bob", "carol", "dave")
        }
    finally:
        assert converge().returncode == 0
    assert let_in == {(machine, user): user in {"bob", "carol"} for machine, user in let_in}


def test_it_is_refused_where_sessions_would_be_part_of_no_job(on: On, converge: Converge) -> None:
    """By keyboard-interactive sshd has PAM's verdict from a process that ends."""
    theirs = "/etc/ssh/sshd_config.d/00-a.conf"
    for machine in MACHINES:
        on(machine, "sh", "-c", f"echo KbdInteractiveAuthentication yes > {theirs}")
    answer = converge()
    for machine in MACHINES:
        on(machine, "rm", theirs)
    said = answer.stdout + answer.stderr
    assert answer.returncode == 2, said
    refused = re.findall(r"fatal: \[molecule-job-ssh-(\w+)\].*sshd takes keyboard-interactive", said)
    assert sorted(set(refused)) == MACHINES
    assert converge().returncode == 0

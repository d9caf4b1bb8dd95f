"""A login on a compute node is part of a job: refused without one, ended with it."""

import re
import secrets
import shlex
import time
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess

import pytest

from molecule.conftest import MACHINES, Converge, On

OF_JOBS = (
    "/usr/share/pam-configs/deploy-job-nodes",
    "/etc/systemd/system/user@.service.d/deploy.conf",
    "/etc/cron.allow",
    "/etc/at.allow",
)
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


PASSWORD = secrets.token_hex(8)


def in_a_job_of(on: On, machine: str, job: str, user: str, command: str) -> CompletedProcess[str]:
    """What somebody types in a job of his; a password is asked for at a terminal."""
    who = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "env", "HOME=/", "LC_ALL=C"]
    step = ["srun", "--quiet", f"--jobid={job}", "--overlap", "--chdir=/"]
    return on(machine, "timeout", "60", *who, *step, "bash", "-c", command, check=False)


def by_su(command: str, account: str) -> str:
    """``su`` with the password of the account, at a terminal of its own."""
    talk = f"import pty, os, sys, time\nwords = ['su', '-', '{account}', '-c', {command!r}]"
    rest = f"""
pid, terminal = pty.fork()
if not pid:
    os.execvp(words[0], words)
said = b''
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    if b'assword' in more:
        os.write(terminal, b'{PASSWORD}\\n')
    said += more
sys.stdout.write(said.decode())
"""
    return f"python3 -c {shlex.quote(talk + rest)}"


@pytest.mark.parametrize("account", ["alice", "bob"])
def test_su_leaves_its_user_in_the_job_but_for_admins(on: On, machine: str, job: str, account: str) -> None:
    for name in ("alice", "bob"):
        on(machine, "sh", "-c", f"echo '{name}:{PASSWORD}' | chpasswd")
    answer = in_a_job_of(on, machine, job, "alice", by_su("cat /proc/self/cgroup", account))
    memory = re.search(r"^\d+:memory:(\S*)", answer.stdout, re.MULTILINE)
    assert memory, answer.stdout + answer.stderr
    assert (f"/job_{job}/" in memory[1]) == (account == "alice"), answer.stdout
    assert ("/user.slice/" in memory[1]) == (account == "bob"), answer.stdout


def test_systemd_starts_nothing_for_users_but_for_admins(on: On, machine: str) -> None:
    """As loginctl enable-linger has it do."""
    state: dict[str, str] = {}
    for user in ("alice", "bob", "carol"):
        unit = f"user@{on(machine, 'id', '-u', user).stdout.strip()}.service"
        on(machine, "loginctl", "enable-linger", user, check=False)
        on(machine, "systemctl", "start", unit, check=False)
        state[user] = on(machine, "systemctl", "is-active", unit, check=False).stdout.strip()
        failed = on(machine, "systemctl", "is-failed", unit, check=False).stdout.strip()
        on(machine, "loginctl", "disable-linger", user, check=False)
        on(machine, "systemctl", "stop", unit, check=False)
        assert failed != "failed", unit
    assert state == {"alice": "inactive", "bob": "active", "carol": "active"}


def test_cron_and_at_are_for_admins_and_as_the_site_says(on: On, converge: Converge, machine: str) -> None:
    lists = ("/etc/cron.allow", "/etc/at.allow")
    for path in lists:
        assert on(machine, "cat", path).stdout.splitlines()[1:] == ["root", "carol"]
    on(machine, "sh", "-c", f"echo alice > {lists[0]}")
    try:
        assert converge(only=machine).returncode == 0
        assert on(machine, "cat", lists[0]).stdout == "alice\n"
    finally:
        on(machine, "rm", lists[0])
        assert converge(only=machine).returncode == 0


def test_packages_do_not_undo_what_pam_is_told(on: On, machine: str) -> None:
    before = on(machine, "cat", "/etc/pam.d/common-session").stdout
    assert before.count("pam_systemd.so") == 1
    on(machine, "pam-auth-update", "--package")
    on(machine, "dpkg-reconfigure", "--frontend=noninteractive", "libpam-systemd")
    assert on(machine, "cat", "/etc/pam.d/common-session").stdout == before


def test_where_no_jobs_run_only_admins_are_let_in(on: On, converge: Converge) -> None:
    try:
        answer = converge(has_jobs=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr
        opened = [on(name, "grep", "pam_s", "/etc/pam.d/common-session").stdout for name in MACHINES]
        there = [on(name, "ls", *OF_JOBS, check=False).stdout for name in MACHINES]
        let_in = {
            (machine, user): ssh(on, machine, user, "true").returncode == 0
            for machine in MACHINES
            for user in ("alice", "bob", "carol", "dave")
        }
    finally:
        assert converge().returncode == 0
    assert [" ".join(line.split()) for line in opened] == ["session optional pam_systemd.so"] * len(MACHINES)
    assert there == [""] * len(MACHINES)
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

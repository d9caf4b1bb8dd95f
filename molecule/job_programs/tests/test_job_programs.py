"""Programs run around each job in their order, and each failure means to Slurm what the site says."""

import re
import time
from collections.abc import Callable, Iterator

import pytest

from molecule.conftest import MACHINES, Converge, On


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.3)


def as_user(on: On, machine: str, *words: str, user: str = "alice", check: bool = True) -> str:
    options = ["timeout", "60", "setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
    return on(machine, *options, "env", f"USER={user}", "HOME=/", *words, check=check).stdout


def submit(on: On, machine: str, script: str, *options: str, user: str = "alice") -> str:
    words = ["sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--mem=100", *options]
    return as_user(on, machine, *words, f"--wrap={script}", user=user).strip()


def job(on: On, machine: str, number: str) -> dict[str, str]:
    """What Slurm says of a job."""
    shown = on(machine, "scontrol", "--oneliner", "show", "job", number).stdout
    return dict(word.split("=", 1) for word in shown.split() if "=" in word)


def ends(on: On, machine: str, number: str) -> None:
    wait_for(lambda: job(on, machine, number)["JobState"] == "COMPLETED")


def node(on: On, machine: str) -> tuple[str, str]:
    """The node's state and reason."""
    name = f"molecule-job-programs-{machine}"
    text = on(machine, "scontrol", "--oneliner", "show", "node", name).stdout
    reason = re.search(r" Reason=(.*?) \[", text)
    state = re.search(r"\bState=(\S+)", text)
    assert state
    return state[1], reason[1] if reason else ""


def traced(on: On, machine: str) -> list[str]:
    return on(machine, "cat", "/srv/trace", check=False).stdout.splitlines()


@pytest.fixture
def ready(on: On, idle: str) -> Iterator[str]:
    """A machine whose node waits for jobs, and whose programs do well; as it is left, too."""
    on(idle, "rm", "-f", "/srv/trace")
    yield idle
    on(
        idle,
        "sh",
        "-c",
        "rm -f /srv/fail-* /srv/hang; scancel --user=alice; scancel --user=bob; pkill -u alice; true",
    )
    name = f"NodeName=molecule-job-programs-{idle}"
    if "DRAIN" in node(on, idle)[0]:
        on(idle, "scontrol", "update", name, "State=RESUME")


def test_programs_run_in_their_order_with_slurms_environment_alone(on: On, ready: str) -> None:
    number = submit(on, ready, "echo job >> /var/tmp/job", "--comment=$(touch /srv/comment)")
    ends(on, ready, number)
    wait_for(lambda: len(traced(on, ready)) >= 6)
    told = [f"{name} {number}" for name in ("z-first", "second", "a-third")]
    assert traced(on, ready) == [*told, "of-the-node with an argument", f"last {number}", "node_health"]
    given = dict(
        line.split("=", 1)
        for line in on(ready, "cat", "/srv/environment").stdout.splitlines()
        if not line.startswith("_=")
    )
    assert {name for name in given if not re.match("SLURMD?_|CUDA_|GPU_", name)} == {
        *("HOME", "LC_ALL", "PATH", "PWD")
    }
    assert given["SLURM_JOB_UID"] == "2001"
    assert " 0 -> /dev/null" in on(ready, "cat", "/srv/open").stdout


def test_a_failure_that_is_ignored_is_in_the_log(on: On, ready: str) -> None:
    on(ready, "touch", "/srv/fail-first")
    number = submit(on, ready, "true")
    ends(on, ready, number)
    assert f"a-third {number}" in traced(on, ready)
    assert "DRAIN" not in node(on, ready)[0]
    log = on(ready, "journalctl", "--identifier=slurm-prolog", "--output=cat").stdout
    assert f"z-first of job {number} failed with exit code 3: no license (ignore)\n" in log


def test_a_failure_that_drains_names_the_program_and_the_job_waits_for_a_node(on: On, ready: str) -> None:
    on(ready, "touch", "/srv/fail-third")
    number = submit(on, ready, "true")
    wait_for(lambda: "DRAIN" in node(on, ready)[0])
    assert node(on, ready)[1] == "Prolog error : a-third: failed with exit code 1: no scratch"
    wait_for(lambda: job(on, ready, number)["JobState"] == "PENDING")
    assert job(on, ready, number)["Priority"] != "0"
    assert "of-the-node with an argument" not in traced(on, ready)
    on(ready, "rm", "/srv/fail-third")
    on(ready, "scontrol", "update", f"NodeName=molecule-job-programs-{ready}", "State=RESUME")
    on(ready, "scontrol", "update", f"JobId={number}", "StartTime=now")
    ends(on, ready, number)


def test_a_failure_that_requeues_leaves_the_node_in_service(on: On, ready: str) -> None:
    on(ready, "touch", "/srv/fail-second")
    number = submit(on, ready, "true")
    wait_for(lambda: job(on, ready, number)["Restarts"] == "1")
    wait_for(lambda: job(on, ready, number)["JobState"] == "PENDING")
    assert f"a-third {number}" not in traced(on, ready)
    assert "DRAIN" not in node(on, ready)[0]
    on(ready, "rm", "/srv/fail-second")
    on(ready, "scontrol", "update", f"JobId={number}", "StartTime=now")
    ends(on, ready, number)


def test_a_job_that_cannot_be_requeued_ends(on: On, ready: str) -> None:
    on(ready, "touch", "/srv/fail-second")
    number = submit(on, ready, "sleep 600", "--no-requeue")
    wait_for(lambda: job(on, ready, number)["JobState"] == "CANCELLED")
    log = on(ready, "journalctl", "--identifier=slurm-prolog", "--output=cat").stdout
    assert f"job {number} is ended: it cannot be requeued\n" in log
    assert "DRAIN" not in node(on, ready)[0]


def test_a_program_that_hangs_is_ended_with_what_it_started(on: On, ready: str) -> None:
    on(ready, "touch", "/srv/hang")
    submit(on, ready, "true")
    wait_for(lambda: "DRAIN" in node(on, ready)[0])
    assert node(on, ready)[1] == "Prolog error : a-third: took longer than 3 s"
    assert on(ready, "pgrep", "--full", "^sleep 4711", check=False).stdout == ""


def test_an_epilog_that_fails_drains(on: On, ready: str) -> None:
    on(ready, "touch", "/srv/fail-last")
    number = submit(on, ready, "true")
    ends(on, ready, number)
    wait_for(lambda: "DRAIN" in node(on, ready)[0])
    assert node(on, ready)[1] == "Epilog error : last: failed with exit code 1"


def test_a_file_for_each_gpu_has_the_jobs_that_have_it(on: On, ready: str) -> None:
    number = submit(on, ready, "sleep 600", "--gres=gpu:2")

    def files() -> dict[str, str]:
        said = on(ready, "sh", "-c", "cd /run/gpu_jobs; grep -H . *", check=False).stdout
        return dict(line.split(":", 1) for line in said.splitlines())

    wait_for(lambda: files() == {"0": number, "1": number})
    # The exporter, which reads them, has no rights.
    assert on(ready, "stat", "--format=%U %a", "/run/gpu_jobs/0").stdout == "root 644\n"
    on(ready, "scancel", number)
    wait_for(lambda: files() == {})


def test_what_a_user_left_goes_with_his_last_job(on: On, ready: str) -> None:
    for user in ("alice", "bob"):
        on(ready, "systemd-run", "--quiet", "--collect", f"--uid={user}", "sleep", f"47{user == 'bob':02}")
        as_user(on, ready, "sh", "-c", f"mkdir /tmp/of-{user}; ln -s /srv /tmp/of-{user}/srv", user=user)
        as_user(on, ready, "sh", "-c", f"echo x > /dev/shm/of-{user}", user=user)

    def left(user: str) -> list[bool]:
        looks = ["pgrep", "--uid", user, "sleep"], ["ls", f"/tmp/of-{user}"], ["ls", f"/dev/shm/of-{user}"]
        return [on(ready, *look, check=False).returncode == 0 for look in looks]

    first, second = (submit(on, ready, "sleep 600") for _ in range(2))
    wait_for(lambda: all(job(on, ready, number)["JobState"] == "RUNNING" for number in (first, second)))
    on(ready, "scancel", first)
    wait_for(lambda: f"last {first}" in traced(on, ready) and "node_health" in " ".join(traced(on, ready)))
    assert left("alice") == [True, True, True]
    on(ready, "scancel", second)
    wait_for(lambda: left("alice") == [False, False, False])
    assert left("bob") == [True, True, True]
    assert on(ready, "ls", "/srv/trace").stdout
    on(ready, "sh", "-c", "pkill --uid bob; rm -r /tmp/of-bob /dev/shm/of-bob")


def test_root_runs_nothing_that_a_user_may_change(on: On, ready: str, converge: Converge) -> None:
    of_alice = [{"name": "of-alice", "path": "/srv/of-alice"}]
    answer = converge(only=ready, tags="configure", further=of_alice)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    try:
        submit(on, ready, "true")
        wait_for(lambda: "DRAIN" in node(on, ready)[0])
        said = "Prolog error : of-alice: is not run: others than root can change /srv/of-alice"
        assert node(on, ready)[1] == said
        assert "of-alice" not in " ".join(traced(on, ready))
    finally:
        answer = converge(only=ready, tags="configure")
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_program_counts_from_the_next_job_on_and_goes_when_the_site_drops_it(
    on: On, ready: str, converge: Converge
) -> None:
    started = on(ready, "systemctl", "show", "--property=MainPID", "slurmd", "slurmctld").stdout
    more = [{"name": "more", "text": "#!/bin/sh\necho more >> /srv/trace\n"}]
    assert converge(only=ready, tags="configure", further=more).returncode == 0
    ends(on, ready, submit(on, ready, "true"))
    assert traced(on, ready)[4] == "more"
    assert converge(only=ready, tags="configure").returncode == 0
    assert on(ready, "ls", "/etc/job_programs/prolog.d").stdout.split() == ["a-third", "second", "z-first"]
    ends(on, ready, submit(on, ready, "true"))
    assert traced(on, ready).count("more") == 1
    assert on(ready, "systemctl", "show", "--property=MainPID", "slurmd", "slurmctld").stdout == started


def test_every_machine_has_them(on: On) -> None:
    for machine in MACHINES:
        assert (
            on(machine, "stat", "--format=%U %a", "/etc/job_programs/prolog.d/second").stdout == "root 755\n"
        )

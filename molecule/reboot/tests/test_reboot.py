"""A machine reboots when it has to, when no job is there, and comes back the way it was found."""

import re
import time

from molecule.conftest import MACHINES, Converge, On


def boot(on: On, machine: str) -> str:
    """When the machine's first process started."""
    return on(machine, "cut", "-d", " ", "-f", "22", "/proc/1/stat").stdout


def state(on: On, machine: str) -> tuple[str, str]:
    """The node's state and reason, once Slurm answers and the node has registered."""
    deadline = time.monotonic() + 120
    while True:
        answer = on(machine, "sinfo", "--noheader", "--format=%T|%E", check=False)
        if answer.returncode == 0 and not re.search(r"\*|unknown|down", answer.stdout):
            break
        assert time.monotonic() < deadline, answer.stdout + answer.stderr
        time.sleep(1)
    name, reason = answer.stdout.strip().split("|", 1)
    return name, reason


def leave_reasons(on: On) -> None:
    for machine in MACHINES:
        on(machine, "sh", "-c", "mkdir -p /run/deploy/reboot && echo a test > /run/deploy/reboot/test")


def test_it_has_rebooted_and_its_node_takes_jobs(on: On, machine: str) -> None:
    assert boot(on, machine) != on(machine, "cat", "/srv/boot").stdout
    assert state(on, machine)[0] == "idle"


def test_a_node_with_jobs_waits_for_them_and_says_whose_they_are(on: On, converge: Converge) -> None:
    before = [boot(on, machine) for machine in MACHINES]
    jobs = []
    for machine in MACHINES:
        assert state(on, machine)[0] == "idle"
        command = ["sbatch", "--parsable", "--chdir=/", "--output=/dev/null", "--wrap=sleep 600"]
        jobs.append(on(machine, "runuser", "-u", "alice", "--", *command).stdout.strip())
        deadline = time.monotonic() + 60
        while (seen := on(machine, "squeue", "--noheader", "--format=%T").stdout) != "RUNNING\n":
            assert time.monotonic() < deadline, seen
            time.sleep(0.5)
    leave_reasons(on)
    answer = converge(patience=0)
    assert answer.returncode == 2, answer.stdout
    for machine, job in zip(MACHINES, jobs, strict=True):
        assert f"jobs still run there: {job} (alice)" in answer.stderr, answer.stderr
        assert state(on, machine) == ("draining", "deploy: maintenance")
        on(machine, "scancel", job)
    assert [boot(on, machine) for machine in MACHINES] == before
    answer = converge(patience=2)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for machine, earlier in zip(MACHINES, before, strict=True):
        assert boot(on, machine) != earlier
        assert state(on, machine)[0] == "idle"


def test_what_somebody_else_drained_stays_drained(on: On, converge: Converge) -> None:
    before = [boot(on, machine) for machine in MACHINES]
    for machine in MACHINES:
        name = f"NodeName=molecule-reboot-{machine}"
        on(machine, "scontrol", "update", name, "State=DRAIN", "Reason=fan 3 is broken")
    leave_reasons(on)
    answer = converge(patience=2)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for machine, earlier in zip(MACHINES, before, strict=True):
        assert boot(on, machine) != earlier
        assert state(on, machine) == ("drained", "fan 3 is broken")
        on(machine, "scontrol", "update", f"NodeName=molecule-reboot-{machine}", "State=RESUME")

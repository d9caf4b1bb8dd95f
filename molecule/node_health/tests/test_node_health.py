"""slurmd has the node drained when it is not fit and resumed when it is, and touches nobody else's reason."""

import re
import time
from collections.abc import Iterator

import pytest

from molecule.conftest import On

# How to make a node ill, the reason that follows, and how to heal it.
ILLNESSES = {
    "mount": (["umount", "/shared"], "/shared is not mounted", ["mount", "-t", "tmpfs", "none", "/shared"]),
    "read-only": (
        ["mount", "-o", "remount,ro", "/shared"],
        "/shared is read-only",
        ["mount", "-o", "remount,rw", "/shared"],
    ),
    "service": (
        ["systemctl", "stop", "probe"],
        "probe is inactive",
        ["systemd-run", "--quiet", "--unit=probe", "sleep", "infinity"],
    ),
    "own check": (["rm", "/srv/well"], "own check: ls: cannot access '/srv/well'", ["touch", "/srv/well"]),
}
CPU_SECONDS_OF_A_CHECK = 0.5


def node(on: On, machine: str) -> tuple[str, str]:
    """The node's state and reason."""
    text = on(machine, "scontrol", "--oneliner", "show", "node", f"molecule-node-health-{machine}").stdout
    reason = re.search(r" Reason=(.*?) \[", text)
    state = re.search(r"\bState=(\S+)", text)
    assert state
    return state[1], reason[1] if reason else ""


def wait_for(on: On, machine: str, state: str, reason: str) -> None:
    """Slurm 24.11 keeps the reason of a drain that is over."""
    deadline = time.monotonic() + 120
    while not ((found := node(on, machine))[0] == state and found[1].startswith(reason)):
        assert time.monotonic() < deadline, found
        time.sleep(0.5)


@pytest.fixture
def healthy(on: On, machine: str) -> Iterator[str]:
    """The machine in service; afterwards nobody holds its node back."""
    wait_for(on, machine, "IDLE", "")
    yield machine
    name = f"NodeName=molecule-node-health-{machine}"
    on(machine, "scontrol", "update", name, "State=RESUME", check=False)


def test_slurmd_has_an_ill_node_drained_while_its_jobs_run_and_then_resumed(on: On, healthy: str) -> None:
    options = ["--parsable", "--chdir=/", "--output=/dev/null"]
    job = on(healthy, "sbatch", *options, "--wrap=sleep 60").stdout.strip()
    on(healthy, "mv", "/dev/nvidia1", "/dev/lost")
    try:
        wait_for(on, healthy, "MIXED+DRAIN", "node_health: gpus: the contract says 2, the machine shows 1")
        assert on(healthy, "squeue", "--noheader", "--format=%T", "--jobs", job).stdout == "RUNNING\n"
    finally:
        on(healthy, "mv", "/dev/lost", "/dev/nvidia1")
        on(healthy, "scancel", job)
    wait_for(on, healthy, "IDLE", "")


@pytest.mark.parametrize("illness", ILLNESSES)
def test_ill_node_is_drained_and_resumed_when_it_is_well(on: On, healthy: str, illness: str) -> None:
    hurt, reason, heal = ILLNESSES[illness]
    on(healthy, *hurt)
    try:
        on(healthy, "node_health")
        wait_for(on, healthy, "IDLE+DRAIN", f"node_health: {reason}")
    finally:
        on(healthy, *heal)
    on(healthy, "node_health")
    wait_for(on, healthy, "IDLE", "")
    assert "nothing is wrong" in on(healthy, "node_health", "--show").stdout


def test_what_a_human_drained_stays_drained(on: On, healthy: str) -> None:
    name = f"NodeName=molecule-node-health-{healthy}"
    on(healthy, "scontrol", "update", name, "State=DRAIN", "Reason=new fan")
    on(healthy, "rm", "--force", "/run/node_health")
    on(healthy, "node_health")
    assert node(on, healthy) == ("IDLE+DRAIN", "new fan")
    on(healthy, "umount", "/shared")
    try:
        assert on(healthy, "node_health", "--show", check=False).stdout == "/shared is not mounted\n"
        on(healthy, "node_health")
    finally:
        on(healthy, "mount", "-t", "tmpfs", "none", "/shared")
    assert node(on, healthy) == ("IDLE+DRAIN", "new fan")


def test_service_that_restarts_is_not_ill(on: On, healthy: str) -> None:
    on(healthy, "systemctl", "restart", "munge")
    assert on(healthy, "node_health", "--show").stdout == "nothing is wrong\n"


def test_a_check_is_quick(on: On, healthy: str) -> None:
    command = "TIMEFORMAT='%U %S'; time node_health --show > /dev/null"
    used = on(healthy, "bash", "-c", command).stderr.split()
    assert sum(map(float, used)) < CPU_SECONDS_OF_A_CHECK

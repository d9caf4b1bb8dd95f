"""The node registers with what it has, runs jobs, and holds each job to the devices it was given."""

import os
import re
import time
from subprocess import CompletedProcess

import pytest

from molecule.conftest import MACHINES, Converge, On

# An allowed device without a driver answers ENXIO, a denied one EPERM.
OPEN_ALL_DEVICES = """
import errno, os
for number in range(2):
    try:
        os.open(f"/dev/nvidia{number}", os.O_RDWR)
    except OSError as reason:
        print(errno.errorcode[reason.errno])
"""

SHORTFALL = "gpus: the contract says 8, the machine shows 2"


def srun(on: On, machine: str, *words: str) -> CompletedProcess[str]:
    """As a user, who has to get an answer soon."""
    options = ["timeout", "30", "setpriv", "--reuid=alice", "--regid=alice", "--init-groups"]
    return on(machine, *options, "srun", "--quiet", "--chdir=/", *words)


def logs_of(on: On, machine: str, process: str) -> list[str]:
    """The files below /var/log that it has open; of one that is removed it says so."""
    command = f"readlink /proc/{process}/fd/* | grep '^/var/log/' | sort --unique"
    return on(machine, "sh", "-c", command).stdout.splitlines()


def test_user_runs_a_job(on: On, idle: str) -> None:
    assert srun(on, idle, "hostname").stdout == f"molecule-slurmd-{idle}\n"
    assert srun(on, idle, "id", "--user", "--name").stdout == "alice\n"


@pytest.mark.parametrize(
    ("gpus", "answers"), [(0, ["EPERM", "EPERM"]), (1, ["ENXIO", "EPERM"]), (2, ["ENXIO", "ENXIO"])]
)
def test_job_opens_only_the_devices_it_asked_for(on: On, idle: str, gpus: int, answers: list[str]) -> None:
    wanted = [f"--gres=gpu:{gpus}"] if gpus else []
    answer = srun(on, idle, *wanted, "python3", "-c", OPEN_ALL_DEVICES)
    assert sorted(answer.stdout.split()) == sorted(answers)


def test_node_registered_with_what_was_discovered(on: On, idle: str) -> None:
    total = re.search(r"MemTotal:\s+(\d+) kB", on(idle, "cat", "/proc/meminfo").stdout)
    assert total
    node = on(idle, "scontrol", "--oneliner", "show", "node", f"molecule-slurmd-{idle}").stdout
    values = dict(word.split("=", 1) for word in node.split() if "=" in word)
    assert values["CPUTot"] == str(len(os.sched_getaffinity(0)))
    assert 0.97 < int(values["RealMemory"]) / (int(total[1]) / 1024) < 1
    assert values["Gres"].startswith("gpu:gpu:2")


def test_configuration_comes_from_the_controller(on: On, machine: str) -> None:
    assert (
        f"--conf-server molecule-slurmd-{machine}" in on(machine, "ps", "-C", "slurmd", "-o", "args=").stdout
    )
    received = on(machine, "cat", "/var/spool/slurmd/conf-cache/slurm.conf").stdout
    assert received == on(machine, "cat", "/etc/slurm/slurm.conf").stdout


def test_it_goes_on_with_a_new_log_when_the_old_one_is_put_by(on: On, machine: str) -> None:
    """As on a node, which has no slurm.conf of its own."""
    conf, aside, log = "/etc/slurm/slurm.conf", "/etc/slurm/aside", "/var/log/slurm/slurmd.log"
    on(machine, "mv", conf, aside)
    try:
        on(machine, "logrotate", "--force", "/etc/logrotate.d/slurmd")
    finally:
        on(machine, "mv", aside, conf)
    daemon = on(machine, "systemctl", "show", "--value", "--property=MainPID", "slurmd").stdout.strip()
    deadline = time.monotonic() + 30
    while log not in (held := logs_of(on, machine, daemon)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert held == [log]


def test_it_starts_with_the_machine(on: On, machine: str) -> None:
    assert on(machine, "systemctl", "is-enabled", "slurmd").stdout == "enabled\n"


def test_machine_that_shows_less_than_its_contract_is_reported(on: On, converge: Converge) -> None:
    answer = converge(tags="configure,service", more_than_there_is={"gpus": [{"type": "gpu", "count": 8}]})
    assert answer.returncode == 2, answer.stdout + answer.stderr
    reported = re.findall(rf"fatal: \[molecule-slurmd-(\w+)\].*{SHORTFALL}", answer.stderr)
    assert sorted(reported) == MACHINES
    assert on("trixie", "systemctl", "is-active", "slurmd").stdout == "active\n"

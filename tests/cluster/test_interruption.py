"""A run that is cut off, however hard, is completed by the next one."""

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.errors import ExitCode
from tests.cluster.lab_cluster import DEPLOY, Cluster, wait_until


def test_ctrl_c_says_what_is_unknown_and_leaves_nothing_running(scratch_lab: Cluster) -> None:
    with first_run(scratch_lab, until="== Base") as run:
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        assert run.stdout
        rest = run.stdout.read()
        assert run.wait(timeout=60) == ExitCode.INTERRUPTED
    assert "unknown" in rest
    assert "run it again" in rest
    assert not _ansible_runs(scratch_lab)
    assert scratch_lab.report()["outcome"] == "interrupted"


def test_the_next_run_picks_up_even_after_sigkill(scratch_lab: Cluster) -> None:
    with first_run(scratch_lab, until="== Base") as run:
        time.sleep(6)  # in the middle of the packages' transaction
        run.send_signal(signal.SIGKILL)
    wait_until("Ansible is gone too", lambda: not _ansible_runs(scratch_lab), seconds=120)
    assert scratch_lab.report()["outcome"] == "interrupted"
    scratch_lab.deploy()
    assert scratch_lab.plain_states() == {"node1": "idle"}
    assert "node1" in scratch_lab.as_user("srun hostname")
    scratch_lab.deploy()
    assert not any(host["changed"] for host in scratch_lab.report()["hosts"].values())


@contextmanager
def first_run(cluster: Cluster, *, until: str) -> Iterator["subprocess.Popen[str]"]:
    """`deploy cluster`, started and followed until it prints a line that begins so."""
    command = [*DEPLOY, "cluster", str(cluster.inventory), "--output", "plain", "--no-validate"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        assert any(line.startswith(until) for line in run.stdout), f"never said: {until}"
        yield run


def _ansible_runs(cluster: Cluster) -> bool:
    """Whether a process of a run on this inventory is still alive."""
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return any("ansible-playbook" in line and str(cluster.inventory) in line for line in listing.splitlines())

"""Machines with kernels of their own: control groups v2, /home by NFS, a reboot, a power cut."""

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

pytestmark = pytest.mark.more
_TO_COME_BACK = 300
_TAKES_MB = "srun --mem=100 python3 -c 'len(bytes([1]) * ({} << 20))'"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A controller that serves /home, a login node and a node with two simulated GPUs, deployed."""
    options = ("--nodes", "1", "--gpus", "2")
    with booted("kernels", tmp_path_factory, *options, machines="uml") as made:
        made.deploy()
        made.as_user("echo written here >note")
        yield made


def test_nothing_changes_when_it_is_deployed_again(cluster: Cluster) -> None:
    assert "converged: no task failed (0 changes" in cluster.deploy().stdout


def test_each_machine_has_a_kernel_and_the_new_control_groups(cluster: Cluster) -> None:
    boots = {host: _boot(cluster, host) for host in ("ctl1", "login1", "node1")}
    assert len(set(boots.values())) == len(boots)
    assert (
        cluster.on("node1", "stat", "--file-system", "--format=%T", "/sys/fs/cgroup").strip() == "cgroup2fs"
    )


def test_a_job_has_the_memory_it_asked_for_and_no_more(cluster: Cluster) -> None:
    limit = "cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/../memory.max"
    assert int(cluster.as_user(f"srun --quiet --mem=100 sh -c '{limit}'")) == 100 << 20
    cluster.as_user(_TAKES_MB.format(10))
    assert re.search("oom|out of memory", cluster.as_user(_TAKES_MB.format(400), expect=None), re.IGNORECASE)


def test_a_job_may_open_its_gpus_and_no_others(cluster: Cluster) -> None:
    one = cluster.as_user("srun --quiet --gpus=1 nvidia-smi -L").splitlines()
    both = cluster.as_user("srun --quiet --gpus=2 nvidia-smi -L").splitlines()
    assert (len(one), len(both)) == (1, 2)


def test_homes_are_those_of_the_file_server_where_other_roots_are_nobody(cluster: Cluster) -> None:
    assert cluster.as_user("srun --quiet cat note").strip() == "written here"
    assert cluster.on("node1", "findmnt", "--noheadings", "--output=FSTYPE", "/home").strip() == "nfs4"
    cluster.as_user("chmod 0700 .")
    cluster.on("node1", "cat", "/home/alice/note", expect=1)
    assert cluster.on("ctl1", "cat", "/home/alice/note").strip() == "written here"


def test_a_validation_finds_nothing_wrong(cluster: Cluster) -> None:
    run(*DEPLOY, "validate", str(cluster.inventory), "--quick")


def test_a_node_that_reboots_takes_jobs_again(cluster: Cluster) -> None:
    before, job = _boot(cluster, "node1"), submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    words = ("node", "reboot", str(cluster.inventory), "node1", "--reason", "new kernel")
    with subprocess.Popen((*DEPLOY, *words), stdout=subprocess.PIPE, text=True) as going:
        wait_until("the node drains", lambda: cluster.node_states()["node1"] == "drng", _TO_COME_BACK)
        assert _boot(cluster, "node1") == before
        cluster.as_user("touch stop")
        said, _ = going.communicate(timeout=2 * _TO_COME_BACK)
    assert (going.returncode, said) == (0, "rebooted: node1\n")
    assert _boot(cluster, "node1") != before
    assert job_state(cluster, job) == "COMPLETED"
    assert cluster.plain_states()["node1"] == "idle"
    _takes_jobs(cluster)


def test_a_node_without_power_is_down_and_comes_back(cluster: Cluster) -> None:
    cluster.on("node1", "sh", "-c", "echo kept >/var/lib/kept; sync")
    before = _boot(cluster, "node1")
    run(*DEPLOY, "lab", "stop", "--name", cluster.name, "node1")
    wait_until("the node is down", lambda: cluster.node_states()["node1"] == "down*", _TO_COME_BACK)
    run(*DEPLOY, "lab", "start", "--name", cluster.name, "node1")
    assert _boot(cluster, "node1") != before
    assert cluster.on("node1", "cat", "/var/lib/kept").strip() == "kept"
    _takes_jobs(cluster)


def _boot(cluster: Cluster, host: str) -> str:
    """The number that the kernel of a machine has from its boot; empty while nobody answers there."""
    return cluster.on(host, "cat", "/proc/sys/kernel/random/boot_id", expect=None).strip()


def _takes_jobs(cluster: Cluster) -> None:
    wait_until("the node is idle", lambda: cluster.node_states()["node1"] == "idle", _TO_COME_BACK)
    assert cluster.as_user("srun --quiet cat note").strip() == "written here"
    assert cluster.on("node1", "systemctl", "--failed", "--quiet") == ""

"""Machines with kernels of their own that hang, boot again, or lose their power."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploy.lab.state import container_name
from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.kernels_lab import FILES, asked, boot_of, failed, kernels_lab, on_lab
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until

pytestmark = pytest.mark.more
_TO_COME_BACK = 300
_OLD_CONTROL_GROUPS = "systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The same machines as those of test_real_kernels."""
    with kernels_lab("power", tmp_path_factory) as made:
        yield made


def test_a_file_server_that_hangs_is_named_and_holds_nobody_up(cluster: Cluster) -> None:
    with _hung(cluster, FILES):
        found = failed(asked(cluster, "job"))
    assert [result["where"] for result in found["reachable"]] == [FILES]
    (server,) = found["file-servers"]
    assert (server["where"], server["message"]) == (FILES, "/home does not answer on ctl1, login1, node1")
    assert f"systemctl status nfs-server; dmesg --level=warn   (on {FILES})" in server["hint"]
    assert [result["where"] for result in found["job"]] == ["login1"]
    wait_until("homes answer", lambda: "here" in cluster.as_user("cat note", expect=None), _TO_COME_BACK)
    _takes_jobs(cluster)


def test_a_node_that_reboots_takes_jobs_again(cluster: Cluster) -> None:
    before, job = boot_of(cluster, "node1"), submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    words = ("node", "reboot", str(cluster.inventory), "node1", "--reason", "new kernel")
    with subprocess.Popen((*DEPLOY, *words), stdout=subprocess.PIPE, text=True) as going:
        wait_until("the node drains", lambda: cluster.node_states()["node1"] == "drng", _TO_COME_BACK)
        assert boot_of(cluster, "node1") == before
        # There: a host remembers for a minute that a file of another one is not there.
        cluster.as_user("touch stop", host="node1")
        said, _ = going.communicate(timeout=2 * _TO_COME_BACK)
    assert (going.returncode, said) == (0, "rebooted: node1\n")
    assert boot_of(cluster, "node1") != before
    assert job_state(cluster, job) == "COMPLETED"
    assert cluster.plain_states()["node1"] == "idle"
    _takes_jobs(cluster)


def test_a_node_without_power_is_down_and_comes_back(cluster: Cluster) -> None:
    """First with a kernel line that turns the new control groups off, without which slurmd does not start.

    Then before its file server. What ran there is started again, there.
    """
    job = submit(cluster, "-w node1", f"srun true; touch ran; {UNTIL_TOLD}")
    wait_until("it runs", lambda: "ran" in cluster.as_user("ls").split(), _TO_COME_BACK)
    cluster.on("node1", "sh", "-c", "echo kept >/var/lib/kept; sync")
    before = boot_of(cluster, "node1")
    on_lab(cluster, "stop", "node1")
    wait_until("the node is down", lambda: cluster.node_states()["node1"] == "down*", _TO_COME_BACK)
    on_lab(cluster, "start", "node1", "--kernel-line", _OLD_CONTROL_GROUPS)
    found = failed(asked(cluster))
    (groups,) = found["control-groups"]
    assert (groups["where"], groups["message"]) == (
        "node1",
        f"control groups are of version 1 instead of 2, by its kernel line: {_OLD_CONTROL_GROUPS}",
    )
    assert f"deploy node reboot {cluster.inventory} node1" in groups["hint"]
    assert [result["where"] for result in found["services"]] == ["node1"]
    on_lab(cluster, "stop", "node1")
    on_lab(cluster, "stop", FILES)
    cluster.power_on("node1")
    on_lab(cluster, "start", FILES)
    on_lab(cluster, "start", "node1")
    assert boot_of(cluster, "node1") != before
    assert cluster.on("node1", "cat", "/var/lib/kept").strip() == "kept"
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED", _TO_COME_BACK)
    _takes_jobs(cluster)
    assert cluster.on(FILES, "systemctl", "--failed", "--quiet") == ""


@contextmanager
def _hung(cluster: Cluster, host: str) -> Iterator[None]:
    """A machine whose kernel does nothing more, for a while."""
    kill = ("podman", "kill", container_name(cluster.name, host), "--signal")
    run(*kill, "STOP")
    try:
        yield
    finally:
        run(*kill, "CONT")


def _takes_jobs(cluster: Cluster) -> None:
    wait_until("the node is idle", lambda: cluster.node_states()["node1"] == "idle", _TO_COME_BACK)
    assert cluster.as_user("srun --quiet cat note").strip() == "written here"
    assert cluster.on("node1", "systemctl", "--failed", "--quiet") == ""

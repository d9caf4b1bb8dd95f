"""A slurmctld that had not saved that a job runs starts it once more; no hand has to put that right."""

import pytest

from tests.cluster.jobs import UNTIL_TOLD, end_job, submit
from tests.cluster.lab_cluster import Cluster, wait_until

pytestmark = [pytest.mark.one_release("trixie"), pytest.mark.more]

_QUEUE = "/var/spool/slurmctld/job_state"


@pytest.fixture
def job(cluster: Cluster) -> str:
    """A job that runs on node1, and of which slurmctld has just read that it waits."""
    _partition(cluster, "DOWN")
    job = submit(cluster, "--nodelist node1", UNTIL_TOLD)
    cluster.on("ctl1", "systemctl", "stop", "slurmctld")
    cluster.on("ctl1", "cp", "--preserve", _QUEUE, "/root/queue")
    cluster.on("ctl1", "systemctl", "start", "slurmctld")
    _partition(cluster, "UP")
    copy = ("pgrep", "--full", rf"slurmstepd: \[{job}.batch\]")
    wait_until("it runs", lambda: bool(cluster.on("node1", *copy, expect=None)), 120)
    cluster.on("ctl1", "sh", "-c", "systemctl kill --signal KILL slurmctld; systemctl stop slurmctld")
    cluster.on("ctl1", "mv", "/root/queue", _QUEUE)
    cluster.on("ctl1", "systemctl", "start", "slurmctld")
    return job


def _partition(cluster: Cluster, state: str) -> None:
    """Once slurmctld answers."""
    words = ("scontrol", "update", "PartitionName=batch", f"State={state}")
    up = ("scontrol", "ping")
    wait_until("slurmctld answers", lambda: "is UP" in cluster.on("ctl1", *up, expect=None), 120)
    cluster.on("ctl1", *words)


def test_node_and_job_go_on_by_the_nodes_next_health_check(cluster: Cluster, job: str) -> None:
    wait_until("Slurm drains the node", lambda: "Duplicate jobid" in cluster.on("ctl1", "sinfo", "-R"), 120)
    shown = ("squeue", "--noheader", "--format", "%T %r", "--job", job)
    wait_until("Slurm holds the job", lambda: "held" in cluster.on("ctl1", *shown), 60)
    # As slurmd does every few minutes.
    cluster.on("node1", "/usr/local/sbin/node_health")
    assert "Duplicate jobid" not in cluster.on("ctl1", "sinfo", "-R")
    said = cluster.on("ctl1", *shown)
    assert said.startswith("PENDING")
    assert "held" not in said.lower()
    end_job(cluster, job)
    wait_until("the node is idle", lambda: cluster.node_states()["node1"] == "idle", 120)

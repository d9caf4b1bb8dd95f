"""The row of a job that slurmctld lost when it died is ended when it was found twice, and not before."""

from functools import partial

import pytest

from tests.cluster.jobs import submit
from tests.cluster.lab_cluster import Cluster, wait_until

pytestmark = [pytest.mark.one_release("trixie"), pytest.mark.more]

_TIMES = 5
"""How often it is tried: slurmctld saves its queue within five seconds, and once in a while just then."""


def test_the_row_of_a_lost_job_is_ended(cluster: Cluster) -> None:
    for _ in range(_TIMES):
        job = submit(cluster, "--output /dev/null", "sleep 600")
        wait_until(f"job {job} has a row", partial(_runs, cluster, job), 60)
        cluster.on("ctl1", "pkill", "-KILL", "-x", "slurmctld")
        cluster.on("ctl1", "systemctl", "stop", "slurmctld")
        cluster.on("ctl1", "systemctl", "start", "slurmctld")
        if not cluster.on("ctl1", "squeue", "--noheader", "--jobs", job, expect=None).strip():
            break
        cluster.on("ctl1", "scancel", job)
    else:
        pytest.fail("slurmctld lost no job")
    assert "ended tomorrow" in _look(cluster)
    assert _runs(cluster, job)
    assert "has not known for a day" in _look(cluster)
    assert _state(cluster, job) == "COMPLETED"
    _look(cluster)
    wait_until("the nodes are idle", lambda: set(cluster.node_states().values()) == {"idle"}, 300)


def _look(cluster: Cluster) -> str:
    """What it says in the journal, as the timer has it said once a day."""
    cluster.on("ctl1", "systemctl", "start", "deploy-runaway-jobs")
    lines = ("journalctl", "--unit", "deploy-runaway-jobs", "--lines", "3", "--output", "cat")
    return cluster.on("ctl1", *lines)


def _runs(cluster: Cluster, job: str) -> bool:
    return _state(cluster, job) == "RUNNING"


def _state(cluster: Cluster, job: str) -> str:
    row = ("sacct", "--noheader", "--allocations", "--parsable2", "--format", "State", "--jobs", job)
    return cluster.on("ctl1", *row).strip()

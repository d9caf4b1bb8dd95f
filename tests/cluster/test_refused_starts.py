"""What Slurm does to nodes and jobs as slurmctld died at the wrong moment is taken back; nothing else is."""

import re
import time
from functools import partial

import pytest

from deploy.lab.state import container_name
from tests.cluster.jobs import end_job, submit
from tests.cluster.lab_cluster import Cluster, run, wait_until
from tests.containers import in_network_of

pytestmark = [pytest.mark.one_release("trixie"), pytest.mark.more]

_LOG = "/var/log/slurm/slurmd.log"
_NODES = ("node1", "node2")
_SECOND = "error: Job {job} already running, do not launch second copy"
_TELLS = (
    "[900003.extern] error: Rank 0 failed sending step completion message directly to slurmctld, retrying"
)
_GIVES_UP = (
    "[{job}.extern] error: *** EXTERN STEP FOR {job} STEPD TERMINATED ON node1 AT 2026-11-29T11:09:08"
    " DUE TO JOB NOT ENDING WITH SIGNALS ***"
)
_SAVED_SECONDS = 6
"""slurmctld saves its queue within five."""


@pytest.mark.parametrize(
    ("reason", "lines", "is_left"),
    [
        ("Duplicate jobid", [_SECOND.format(job=900001)], False),
        ("Duplicate jobid, and a fan", [_SECOND.format(job=900002)], True),
        ("Kill task failed", [_TELLS, _GIVES_UP.format(job=900003)], False),
        ("Kill task failed", [_GIVES_UP.format(job=900004)], True),
    ],
)
def test_a_node_goes_on_by_its_next_health_check(
    cluster: Cluster, reason: str, lines: list[str], *, is_left: bool
) -> None:
    """As Slurm and slurmd did it when an older queue was put back under a slurmctld by hand, or one hung."""
    drain = ("scontrol", "update", "NodeName=node1", "State=DRAIN", f"Reason={reason}")
    cluster.on("ctl1", "runuser", "--user", "slurm", "--", *drain)
    for line in lines:
        cluster.on("node1", "sh", "-c", f'echo "[$(date +%FT%T).000] {line}" >> {_LOG}')
    # As slurmd does every few minutes.
    cluster.on("node1", "/usr/local/sbin/node_health")
    assert (reason in _reasons(cluster)) is is_left
    cluster.on("ctl1", "scontrol", "update", "NodeName=node1", "State=RESUME", expect=None)
    wait_until("the node is idle", lambda: cluster.node_states()["node1"] == "idle", 120)


@pytest.mark.parametrize("seconds", [0, 16], ids=["back-at-once", "back-later"])
def test_a_start_that_was_half_sent_when_slurmctld_died(cluster: Cluster, seconds: int) -> None:
    """Of the two messages of a start the second one never comes; whatever follows, the job ends in order."""
    for _ in range(9):
        job = _die_while_one_starts(cluster, seconds)
        if not any(_is_refused(cluster, node, job) for node in _NODES):
            # Another message was lost, or both; in the latter case Slurm notices after half an hour.
            end_job(cluster, job)
            continue
        wait_until(f"job {job} ends", partial(_goes_on, cluster, job), 300)
        break
    else:
        pytest.fail("slurmd refused none of the starts")
    assert _reasons(cluster) == {"none"}


def _die_while_one_starts(cluster: Cluster, seconds: int) -> str:
    job = submit(cluster, "--hold --output /dev/null", "sleep 3")
    time.sleep(_SAVED_SECONDS)
    rule = ("-p", "tcp", "--dport", "6818", "--syn", "-m", "statistic", "--mode", "nth", "--every", "2")
    network = in_network_of(container_name(cluster.name, "ctl1"), "iptables")
    run(*network, "-I", "OUTPUT", *rule, "--packet", "1", "-j", "DROP")
    try:
        cluster.on("ctl1", "scontrol", "release", job)
        until = f"until scontrol show job {job} | grep -q RUNNING; do sleep 0.1; done"
        cluster.on("ctl1", "sh", "-c", f"{until}; pkill -KILL -x slurmctld")
        cluster.on("ctl1", "systemctl", "stop", "slurmctld")
    finally:
        run(*network, "-D", "OUTPUT", *rule, "--packet", "1", "-j", "DROP")
    time.sleep(seconds)
    cluster.on("ctl1", "systemctl", "start", "slurmctld")
    # So long slurmd waits for the second message, after which it refuses the start.
    time.sleep(max(0, 25 - seconds))
    return job


def _is_refused(cluster: Cluster, node: str, job: str) -> bool:
    return bool(re.search(rf"error: .*\b[Jj]ob(?:Id=| ){job}\b", cluster.on(node, "cat", _LOG)))


def _goes_on(cluster: Cluster, job: str) -> bool:
    """Looks as slurmd does every few minutes; Slurm would have a job that is requeued wait for two."""
    for node in _NODES:
        cluster.on(node, "/usr/local/sbin/node_health")
    shown = _shown(cluster, job)
    if "Reason=JobHeldUser" in shown:  # that it was released had not been saved
        cluster.on("ctl1", "scontrol", "release", job)
    if "JobState=PENDING Reason=BeginTime" in shown:
        cluster.on("ctl1", "scontrol", "update", f"JobId={job}", "StartTime=now")
    return "JobState=COMPLETED" in shown and set(cluster.node_states().values()) == {"idle"}


def _shown(cluster: Cluster, job: str) -> str:
    return cluster.on("ctl1", "scontrol", "--oneliner", "show", "job", job)


def _reasons(cluster: Cluster) -> set[str]:
    return {*cluster.on("ctl1", "sinfo", "--noheader", "--Node", "--format=%E").splitlines()}

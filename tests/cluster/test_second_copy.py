"""The drain of a node on which slurmctld started a job twice is taken back, and no other one."""

import pytest

from tests.cluster.lab_cluster import Cluster, wait_until

pytestmark = [pytest.mark.one_release("trixie"), pytest.mark.more]

_LOG = "/var/log/slurm/slurmd.log"
_REFUSED = "[2026-11-28T14:10:08.011] error: Job {} already running, do not launch second copy"


@pytest.mark.parametrize(
    ("reason", "is_left"), [("Duplicate jobid", False), ("Duplicate jobid, and a fan", True)]
)
def test_a_node_goes_on_by_its_next_health_check(cluster: Cluster, reason: str, *, is_left: bool) -> None:
    """As Slurm and slurmd did it when an older queue was put back under a slurmctld by hand."""
    drain = ("scontrol", "update", "NodeName=node1", "State=DRAIN", f"Reason={reason}")
    cluster.on("ctl1", "runuser", "--user", "slurm", "--", *drain)
    line = _REFUSED.format(900001 + is_left)
    cluster.on("node1", "sh", "-c", f"echo '{line}' >> {_LOG}")
    # As slurmd does every few minutes.
    cluster.on("node1", "/usr/local/sbin/node_health")
    reasons = cluster.on("ctl1", "sinfo", "--noheader", "--nodes=node1", "--format=%E").splitlines()
    assert (reason in reasons) is is_left
    cluster.on("ctl1", "scontrol", "update", "NodeName=node1", "State=RESUME", expect=None)
    wait_until("the node is idle", lambda: cluster.node_states()["node1"] == "idle", 120)

"""Who may be where: ssh to nodes needs a job there, login nodes give one user no more than a share."""

from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import Cluster, wait_until

MAKE_A_KEY = """\
mkdir -m 700 .ssh
ssh-keygen -q -t ed25519 -N "" -f .ssh/id_ed25519
cp .ssh/id_ed25519.pub .ssh/authorized_keys
echo StrictHostKeyChecking accept-new > .ssh/config
"""


def test_ssh_to_a_node_needs_a_job_there_and_ends_with_it(cluster: Cluster) -> None:
    cluster.as_user(MAKE_A_KEY)
    assert "you have no active jobs on this node" in cluster.as_user("ssh node1 hostname", expect=255)
    job = submit(cluster, "-w node1", "sleep 300")
    wait_for_job(cluster, job, "RUNNING")
    assert f"/job_{job}/step_extern" in cluster.as_user("ssh node1 cat /proc/self/cgroup")
    assert "you have no active jobs" in cluster.as_user("ssh node2 hostname", expect=255)
    cluster.as_user("ssh node1 sleep 4711 > session 2>&1 & sleep 2")
    assert cluster.on("node1", "pgrep", "--full", "^sleep 4711")
    cluster.as_user(f"scancel {job}")
    wait_until(
        "the session ends", lambda: not cluster.on("node1", "pgrep", "-f", "^sleep 4711", expect=None), 20
    )
    assert "closed by remote host" in cluster.as_user("cat session")


def test_a_memory_hog_on_the_login_node_is_stopped(cluster: Cluster) -> None:
    """By ssh, as people come in; alice has her key from the test above."""
    hog = "python3 -c 'print(len(bytearray({} << 20)))'; echo ended with $?"
    for megabytes, code in ((800, 137), (200, 0)):
        said = cluster.as_user(f"ssh login1 bash -s <<'END'\n{hog.format(megabytes)}\nEND")
        assert f"ended with {code}\n" in said

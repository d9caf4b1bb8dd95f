"""A node that dies with a job."""

from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until


def test_a_node_that_dies_with_a_job_comes_back_by_itself(cluster: Cluster) -> None:
    job = submit(cluster, "-w node2 --requeue", "sleep 20")
    wait_for_job(cluster, job, "RUNNING")
    run(*DEPLOY, "lab", "stop", "--name", cluster.name, "node2")
    wait_until("node2 is down", lambda: cluster.node_states()["node2"].startswith("down"), seconds=120)
    assert cluster.as_user(f"squeue -h -j {job} -o %T").strip() in {"PENDING", "RUNNING"}
    run(*DEPLOY, "lab", "start", "--name", cluster.name, "node2")
    wait_until(
        "node2 is back", lambda: cluster.node_states()["node2"] in {"idle", "alloc", "mix"}, seconds=60
    )
    wait_for_job(cluster, job, "COMPLETED", seconds=240)
    assert "node2" in cluster.as_user("srun -w node2 hostname")

"""A node that dies with a job, daemons that die, and a controller that comes later than its nodes."""

import pytest

from deploy.lab.state import container_name
from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until


@pytest.mark.one_release("bookworm")
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


_DAEMONS = [
    *(("ctl1", name) for name in ("munge", "slurmdbd", "slurmctld")),
    *(("node1", name) for name in ("munge", "slurmd")),
    ("login1", "munge"),
]


def test_daemons_that_are_killed_come_back_by_themselves(cluster: Cluster) -> None:
    daemons = [*_DAEMONS, *[("login1", "sackd")] * (cluster.release == "trixie")]
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    # slurmctld writes its state every few seconds: a job of which nothing is written yet is lost with it.
    cluster.on("ctl1", "touch", "/run/it-runs")
    cluster.on("ctl1", "scontrol", "update", f"jobid={job}", "comment=to be written")
    written = ("find", "/var/spool/slurmctld/job_state", "-newer", "/run/it-runs")
    wait_until("the job is in slurmctld's state", lambda: bool(cluster.on("ctl1", *written)), seconds=60)
    before = cluster.starts("ctl1", "node1", "login1")
    for host, daemon in daemons:
        cluster.on(host, "systemctl", "kill", "--kill-whom=main", "--signal=KILL", daemon)

    def are_back() -> bool:
        now = cluster.starts("ctl1", "node1", "login1")
        return all(now.get(one, before[one]) != before[one] for one in daemons)

    wait_until("all run again", are_back, seconds=120)
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED", seconds=120)
    assert "node1" in cluster.as_user("srun -w node1 hostname")


@pytest.mark.one_release
def test_a_controller_that_comes_later_than_its_nodes_is_waited_for(cluster: Cluster) -> None:
    """As after a power cut; systemd's patience with a daemon that does not come up is short here."""
    waiting = [("node1", "slurmd")]
    # Slurm has it since 23.11, and Ubuntu's package of that has not.
    if cluster.on("login1", "systemctl", "cat", "sackd", expect=None):
        waiting.append(("login1", "sackd"))
    cluster.on("ctl1", "systemctl", "stop", "slurmctld")
    for host, daemon in waiting:
        drop_in = f"/run/systemd/system/{daemon}.service.d/impatient.conf"
        write = (
            f"mkdir -p $(dirname {drop_in}); echo [Service] > {drop_in}; echo TimeoutStartSec=2 >> {drop_in}"
        )
        cluster.on(
            host, "sh", "-c", f"{write}; systemctl daemon-reload; systemctl --no-block restart {daemon}"
        )

    def has_failed(host: str, daemon: str) -> bool:
        count = cluster.on(host, "systemctl", "show", daemon, "--property=NRestarts", "--value")
        return int(count) > 1

    for host, daemon in waiting:
        wait_until(f"{daemon} has failed twice", lambda: has_failed(host, daemon), seconds=120)  # noqa: B023
        cluster.on(host, "rm", "-r", f"/run/systemd/system/{daemon}.service.d")
        cluster.on(host, "systemctl", "daemon-reload")
    cluster.on("ctl1", "systemctl", "start", "slurmctld")
    for host, daemon in waiting:
        active = ("systemctl", "is-active", daemon)
        wait_until(f"{daemon} runs", lambda: cluster.on(host, *active, expect=None) == "active\n", 180)  # noqa: B023
    wait_until("node1 is back", lambda: cluster.node_states()["node1"] == "idle", seconds=120)
    assert "node1" in cluster.as_user("srun -w node1 hostname")


@pytest.mark.one_release
def test_a_node_reboots_as_slurm_is_told(cluster: Cluster) -> None:
    cluster.on("ctl1", "scontrol", "reboot", "asap", "nextstate=resume", "node1")
    state = ("podman", "container", "inspect", "--format", "{{.State.Status}}")
    name = container_name(cluster.name, "node1")
    wait_until("node1 goes down", lambda: run(*state, name).stdout.strip() == "exited", seconds=120)
    # Nobody but the lab starts its machines, and in a container Slurm sees the boot of the computer below.
    run(*DEPLOY, "lab", "start", "--name", cluster.name, "node1")
    cluster.on("ctl1", "scontrol", "update", "nodename=node1", "state=resume")
    wait_until("node1 is back", lambda: cluster.node_states()["node1"] == "idle", seconds=120)

"""What the inventory says of scheduling: jobs give way to others, licenses run out, nodes know the fabric."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.conftest import RELEASES
from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

pytestmark = [pytest.mark.one_release, pytest.mark.more]

SAID = {
    "slurmctld_partitions": [
        {"name": "batch", "default": True, "priority_tier": 1},
        {"name": "urgent", "priority_tier": 10, "preempt_mode": "OFF"},
    ],
    "slurmctld_preemption": "partition",
    "slurmctld_switches": [
        {"name": "leaf1", "nodes": ["node1"]},
        {"name": "leaf2", "nodes": ["node2"]},
        {"name": "top", "switches": ["leaf1", "leaf2"]},
    ],
    "slurmctld_kill_invalid_depend": True,
    "slurmctld_licenses": [{"name": "matlab", "count": 1}],
}


@pytest.fixture(scope="module", params=RELEASES)
def scheduled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with nothing of that yet."""
    release = str(request.param)
    with booted("scheduling", tmp_path_factory, "--nodes", "2", "--gpus", "2", release=release) as made:
        made.deploy()
        yield made


def test_all_of_it_comes_under_jobs(scheduled: Cluster) -> None:
    """One that runs and starts a step then, and one that waits. Preemption alone needs consent."""
    script = "touch began; until test -e go; do sleep 1; done; srun hostname > stepped; rm go"
    running = submit(scheduled, "-w node1 --gpus=1 --mem=50M", script)
    wait_for_job(scheduled, running, "RUNNING")
    filling = submit(scheduled, "-w node2 --exclusive", UNTIL_TOLD)
    waiting = submit(scheduled, "-w node2 --mem=50M", "true")
    own = scheduled.directory / "host_vars/ctl1.yml"
    own.parent.mkdir()
    own.write_text(json.dumps(SAID))
    said = scheduled.deploy(expect=3).stdout
    assert [line for line in said.splitlines() if "LOSES JOBS" in line] == [
        "LOSES JOBS  PreemptMode:  -> REQUEUE"
    ]
    scheduled.deploy("--yes")
    scheduled.as_user("touch go stop")
    for job in (running, filling, waiting):
        wait_for_job(scheduled, job, "COMPLETED", seconds=120)
        assert "Restarts=0" in scheduled.on("ctl1", "scontrol", "show", "job", job)
    assert scheduled.as_user("cat stepped") == "node1\n"


def test_nodes_know_the_fabric_and_their_gpus(scheduled: Cluster) -> None:
    assert "SwitchName=top Level=1" in scheduled.on("node2", "scontrol", "show", "topology")
    said = scheduled.as_user("srun --switches=1 --constraint=a100 -w node2 printenv SLURM_TOPOLOGY_ADDR")
    # Slurm 22.05 tells a job of its node alone.
    assert said.strip() == ("node2" if scheduled.release == "bookworm" else "top.leaf2.node2")


def test_a_job_gives_way_to_one_of_a_higher_tier_and_comes_back(scheduled: Cluster) -> None:
    low = submit(scheduled, "-w node1 --exclusive --requeue", UNTIL_TOLD)
    wait_for_job(scheduled, low, "RUNNING")
    assert "node1" in scheduled.as_user("srun --partition=urgent -w node1 --exclusive hostname")
    # Slurm lets what it requeued wait for two minutes.
    wait_for_job(scheduled, low, "RUNNING", seconds=400)
    shown = scheduled.on("ctl1", "scontrol", "show", "job", low)
    assert "Restarts=1" in shown
    scheduled.as_user("touch stop")
    wait_for_job(scheduled, low, "COMPLETED")


def test_a_second_job_waits_for_the_license(scheduled: Cluster) -> None:
    first = submit(scheduled, "--licenses=matlab --mem=50M", UNTIL_TOLD)
    wait_for_job(scheduled, first, "RUNNING")
    second = submit(scheduled, "--licenses=matlab --mem=50M", "true")

    def waits_for_it() -> bool:
        return "Licenses" in scheduled.on("ctl1", "squeue", "--noheader", "--jobs", second, "--format", "%r")

    wait_until("the second waits for the license", waits_for_it, seconds=120)
    scheduled.as_user("touch stop")
    for job in (first, second):
        wait_for_job(scheduled, job, "COMPLETED")
    rows = ("sacct", "--noheader", "--allocations", "--format=AllocTRES%80", "--jobs", first)
    assert "license/matlab=1" in scheduled.on("ctl1", *rows)


def test_a_job_whose_dependency_can_never_come_true_is_ended(scheduled: Cluster) -> None:
    failing = submit(scheduled, "--hold --mem=50M", "false")
    never = submit(scheduled, f"--mem=50M --dependency=afterok:{failing}", "true")
    scheduled.as_user(f"scontrol release {failing}")
    wait_for_job(scheduled, failing, "FAILED")

    def is_gone() -> bool:
        return not scheduled.on("ctl1", "squeue", "--noheader", "--states=pending", "--jobs", never)

    wait_until("the job that can never start is ended", is_gone, seconds=300)


def test_a_drain_during_maintenance_is_known_and_released(scheduled: Cluster) -> None:
    """Slurm names the reservation behind the reason of the drain, from 23.11 on."""

    def node(verb: str, *words: str) -> str:
        return run(*DEPLOY, "node", verb, str(scheduled.inventory), *words).stdout

    def shown() -> str:
        return scheduled.on("ctl1", "scontrol", "--oneliner", "show", "node", "node1")

    words = "starttime=now duration=60 user=root flags=maint nodes=node1 reservationname=service"
    scheduled.on("ctl1", "scontrol", "create", "reservation", *words.split())
    wait_until("the node is in maintenance", lambda: "MAINTENANCE" in shown(), 120)
    node("drain", "node1", "--reason", "firmware")
    assert "+DRAIN" in shown()
    assert [each["name"] for each in json.loads(node("list", "--json")) if each["drains"]] == ["node1"]
    assert "in service: node1" in node("resume", "node1")
    assert "+DRAIN" not in shown()
    scheduled.on("ctl1", "scontrol", "delete", "reservationname=service")


def test_all_of_it_is_converged(scheduled: Cluster) -> None:
    assert "0 changes" in scheduled.deploy().stdout

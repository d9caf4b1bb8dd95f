"""`deploy validate` on a healthy cluster of its own, and with every fault of faults.py."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.faults import GROUPS
from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run
from tests.cluster.validated import expect_found, validated

NEEDS_PARTS_OF_OTHER_SITES = {
    *("mounts", "file-servers", "quotas", "plugins", "containers", "portal", "standby", "energy"),
    *("prometheus", "targets", "alerts", "alertmanager", "grafana"),
}
NEEDS_PROGRAMS = {"nccl", "nccl-bandwidth", "nvbandwidth", "dcgm", "training"}
"""Those that a lab does not install; that they are missing must be said."""
BESIDE = (
    *(
        "-e",
        '{"network_mounts_filesystems": [{"path": "/scratch", "type": "beegfs", "servers": ["10.0.0.1"]}]}',
    ),
    *("-e", '{"slurm_accounts_qos": [{"name": "ghost"}]}'),
)
"""What the inventory promises for the faults of the group hosts."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """As good as new, with MPI."""
    with booted("validation", tmp_path_factory, "--nodes", "2", "--gpus", "2") as made:
        with (made.directory / "group_vars" / "all.yml").open("a") as file:
            file.write("openmpi_packages: [openmpi-bin]\n")
        made.deploy()
        yield made


def traces(cluster: Cluster) -> list[str]:
    """What a validation could leave: jobs, reservations, files, accounts."""
    jobs = cluster.on("ctl1", "squeue", "--all", "--noheader", "--user", "deploy-validate")
    reservations = cluster.on("ctl1", "scontrol", "--oneliner", "show", "reservations")
    files = [
        cluster.on(host, "find", "/tmp", "/home/deploy-validate", "-name", "*deploy*")
        for host in ("login1", "node1", "node2")
    ]
    homes = cluster.on("login1", "ls", "-A", "/home/deploy-validate")
    return [jobs, reservations, *files, homes, cluster.on("node1", "cat", "/etc/passwd")]


def expect_nothing_left(cluster: Cluster, before: list[str]) -> None:
    """What was there before is all that is there, in a minute at the latest."""
    deadline = time.monotonic() + 60
    while traces(cluster) != before and time.monotonic() < deadline:
        time.sleep(1)
    assert traces(cluster) == before


def test_a_healthy_cluster_passes_and_nothing_is_left(cluster: Cluster, tmp_path: Path) -> None:
    before = traces(cluster)
    cluster.on("node1", "truncate", "--size=0", "/var/log/slurm/slurmd.log")
    found = validated(
        cluster, "--junit", str(tmp_path / "v.xml"), "--html", str(tmp_path / "v.html"), expect=0
    )
    outcomes = {name: check["outcome"] for name, check in found.items()}
    elsewhere = NEEDS_PARTS_OF_OTHER_SITES | NEEDS_PROGRAMS
    assert {name for name, outcome in outcomes.items() if outcome != "passed"} == elsewhere
    assert {outcomes[name] for name in elsewhere} == {"not applicable"}
    assert all("install" in found[name]["verdicts"][0]["message"] for name in NEEDS_PROGRAMS)
    assert 'failures="0"' in (tmp_path / "v.xml").read_text()
    # A connection that is opened and closed without a word is an error to slurmd.
    assert "Zero Bytes" not in cluster.on("node1", "cat", "/var/log/slurm/slurmd.log")
    assert "deploy-validate" not in before[0]
    expect_nothing_left(cluster, before)
    assert (tmp_path / "v.html").read_text().count("<details") == len(found)


@pytest.mark.parametrize("group", GROUPS)
def test_every_fault_is_found_where_it_is(cluster: Cluster, group: str) -> None:
    expect_found(cluster, GROUPS[group], *(BESIDE if group == "hosts" else ()))


def test_a_burn_in_loads_idle_nodes_and_leaves_those_of_users_alone(cluster: Cluster) -> None:
    before = traces(cluster)
    job = submit(cluster, "--nodelist=node2", "sleep 300")
    try:
        wait_for_job(cluster, job, "RUNNING")
        found = validated(cluster, "--only", "burn-in", "--burn-in", "0.01", expect=1)
    finally:
        cluster.on("ctl1", "scancel", job)
    verdicts = {verdict["where"]: verdict for verdict in found["burn-in"]["verdicts"]}
    assert {verdict["outcome"] for verdict in verdicts.values()} == {"not measured"}
    # Its CPUs did their work; for its simulated GPUs there is none.
    assert verdicts["node1"]["value"] > 0
    assert "GPUs had nothing to do" in verdicts["node1"]["message"]
    assert verdicts["node2"]["message"] == "it was never idle: jobs of users have it"
    expect_nothing_left(cluster, before)


def test_an_interrupted_validation_cleans_up_and_a_second_one_is_refused(
    cluster: Cluster, tmp_path: Path
) -> None:
    before = traces(cluster)
    with subprocess.Popen(
        [*DEPLOY, "validate", str(cluster.inventory), "--only", "time-limit"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for _ in range(120):
            if cluster.on("ctl1", "squeue", "--all", "--noheader", "--user", "deploy-validate"):
                break
            cluster.on("ctl1", "sleep", "0.5")
        # From another copy of the site: in this one the first has the site's own lock.
        copy = shutil.copytree(cluster.directory, tmp_path / "copy")
        second = run(*DEPLOY, "validate", str(copy / "inventory.ini"), "--only", "job", expect=2)
        assert "login1: another validation of this cluster is at work" in second.stderr
        assert "[validation-at-work]" in second.stderr
        process.terminate()
        assert process.wait(60) == 130
    expect_nothing_left(cluster, before)


def test_after_all_faults_were_fixed_nothing_is_worse_than_before(cluster: Cluster) -> None:
    words = ("validate", str(cluster.inventory), "--quick", "--since", "last")
    said = run(*DEPLOY, *words, expect=0, seconds=300).stdout
    (since,) = re.findall(r"^since the validation of \S+: \d+ of (\d+) results changed$", said, re.MULTILINE)
    assert int(since) > 50
    assert not re.findall("^worse .*", said, re.MULTILINE)

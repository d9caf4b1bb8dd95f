"""`deploy update`: the distribution's updates under load, in batches, and one that goes wrong.

`make update-long` does it with four nodes.
"""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from deploy.site.node_lists import fold
from tests.cluster.conftest import NODES
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until
from tests.cluster.packages import ASKS_FOR_A_REBOOT, install, offer, remove

pytestmark = [pytest.mark.one_release, pytest.mark.more]

HOSTS = ("ctl1", "login1", *NODES)
_WATCH = (
    "while sleep 0.5; do sinfo --noheader --Node --format '%N %T' | tr '\\n' ';'; echo; done > /root/seen"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module", autouse=True)
def _packages(cluster: Cluster, place: Path) -> Iterator[None]:
    for host in HOSTS:
        install(cluster, host, place)
    yield
    for host in HOSTS:
        remove(cluster, host)
    cluster.deploy()


def test_updates_come_in_batches_under_load(cluster: Cluster, place: Path) -> None:
    for host in HOSTS:
        offer(cluster, host, place, 2, "deploy-probe")
    offer(cluster, "node1", place, 2, "deploy-probe", "deploy-core", after=ASKS_FOR_A_REBOOT)
    waiting = {it["host"]: it for it in json.loads(update(cluster, "--json"))}
    assert {name: [package["name"] for package in it["packages"]] for name, it in waiting.items()} == {
        **{host: ["deploy-probe"] for host in HOSTS},
        "node1": ["deploy-core", "deploy-probe"],
    }
    assert versions(cluster, "deploy-probe") == dict.fromkeys(HOSTS, "1")
    boots = {host: booted(cluster, host) for host in HOSTS}
    submit = "sbatch --parsable --nodelist={} --requeue --wrap 'sleep 20'"
    jobs = [cluster.as_user(submit.format(node)).strip() for node in NODES]
    jobs += [cluster.as_user("sbatch --parsable --wrap 'sleep 1'").strip() for _ in range(6)]
    cluster.on("ctl1", "systemd-run", "--collect", "--unit=watch", "sh", "-c", _WATCH)
    words = (*DEPLOY, "update", str(cluster.inventory), "--yes", "--batch", "1")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as going:
        # A container that reboots has ended; its power is what brings it back.
        wait_until("node1 is off", partial(cluster.is_off, "node1"), seconds=900)
        run(*DEPLOY, "lab", "start", "--name", cluster.name, "node1")
        said, _ = going.communicate(timeout=600)
    assert going.returncode == 0, said
    cluster.on("ctl1", "systemctl", "stop", "watch")
    assert f"updated: ctl1,login1,{fold(NODES)}" in said
    assert versions(cluster, "deploy-probe") == dict.fromkeys(HOSTS, "2")
    # What ran with the old file was restarted; a node was rebooted that had to be, and no other host.
    assert {host: stale(cluster, host) for host in HOSTS} == dict.fromkeys(HOSTS, "")
    assert {host for host in HOSTS if booted(cluster, host) != boots[host]} == {"node1"}
    for line in cluster.on("ctl1", "cat", "/root/seen").splitlines():
        # sinfo names a node once for each of its partitions.
        out = {node.split()[0] for node in line.split(";") if "drain" in node or "down" in node}
        assert len(out) <= 1, line
    for job in jobs:
        wait_until(f"job {job} is done", partial(ended, cluster, job), 60)
    wait_until("all nodes are idle", lambda: {*cluster.node_states().values()} == {"idle"}, 120)
    assert "up to date" in update(cluster, "--check")
    assert {host: it["record"]["drift"] for host, it in cluster.status().items()} == {
        host: [] for host in HOSTS
    }


def test_a_node_that_does_not_come_through_stops_it(cluster: Cluster, place: Path) -> None:
    offer(cluster, "node1", place, 3, "deploy-probe", after="exit 1")
    for host in HOSTS:
        if host == "node1":
            continue
        offer(cluster, host, place, 3, "deploy-probe")
    said = update(cluster, "--yes", "--batch", "1", expect=1)
    assert "[batch-stopped]" in said
    assert versions(cluster, "deploy-probe") | {"node1": ""} == {**dict.fromkeys(HOSTS, "2"), "node1": ""}
    assert cluster.plain_states() == {**dict.fromkeys(NODES, "idle"), "node1": "drain"}
    cluster.on("node1", "sh", "-c", "echo '#!/bin/sh' > /var/lib/dpkg/info/deploy-probe.postinst")
    update(cluster, "--yes", "--batch", "1")
    assert versions(cluster, "deploy-probe") == dict.fromkeys(HOSTS, "3")
    assert {*cluster.plain_states().values()} == {"idle"}


def update(cluster: Cluster, *options: str, expect: int = 0) -> str:
    result = run(*DEPLOY, "update", str(cluster.inventory), *options, expect=expect, seconds=900)
    return result.stdout + (result.stderr if expect else "")


def versions(cluster: Cluster, package: str) -> dict[str, str]:
    show = ("dpkg-query", "--show", "--showformat=${Version}", package)
    return {host: cluster.on(host, *show) for host in HOSTS}


def ended(cluster: Cluster, job: str) -> bool:
    """Whether a job is completed; it never ran more than once, nor in any other way."""
    rows = (
        "sacct",
        "--noheader",
        "--allocations",
        "--duplicates",
        "--parsable2",
        "--format=State",
        "--jobs",
        job,
    )
    states = cluster.on("ctl1", *rows).split()
    assert len(states) <= 1, states
    assert {*states} <= {"COMPLETED", "RUNNING", "PENDING"}, states
    return states == ["COMPLETED"]


def booted(cluster: Cluster, host: str) -> str:
    return cluster.on(host, "stat", "--format=%Y", "/proc/1")


def stale(cluster: Cluster, host: str) -> str:
    look = (
        "grep --files-with-matches '/usr/lib/deploy-probe.*(deleted)' /proc/[0-9]*/maps 2>/dev/null || true"
    )
    return cluster.on(host, "sh", "-c", look)

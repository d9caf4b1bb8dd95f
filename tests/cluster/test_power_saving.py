"""Nodes that Slurm switches off and on by programs of the site's, a machine of its own and a cloud node.

Of a lab's containers none can start another: the programs write down what is wanted, and what stands for the
cloud reads that from outside.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from deploy.lab.power import power_off, power_on
from deploy.monitoring.alerts import CHAPTERS
from tests.cluster.conftest import RELEASES
from tests.cluster.dashboard_queries import ask
from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import Cluster, booted, wait_until
from tests.cluster.test_monitoring import page_of
from tests.cluster.validated import validated

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_WANTED = "/var/log/slurm/wanted"
_IDLE_SECONDS, _COMES_SECONDS = 90, 240
_SWITCHED = _IDLE_SECONDS + 240
"""So long it may take on a busy machine until an idle node is off."""


def _program(kind: str) -> dict[str, str]:
    return {
        "text": f'#!/bin/sh\nfor node in $(scontrol show hostnames "$1"); do\n'
        f'    echo "{kind} $node" >> {_WANTED}\ndone\n'
    }


SAID = {
    "slurmctld_suspend_program": _program("off"),
    "slurmctld_resume_program": _program("on"),
    "slurmctld_resume_fail_program": _program("failed"),
    "slurmctld_suspend_time": _IDLE_SECONDS,
    "slurmctld_suspend_timeout": 10,
    "slurmctld_resume_timeout": _COMES_SECONDS,
}


@dataclass
class Cloud:
    """What does as the programs say; it ``refuses`` to start some."""

    cluster: Cluster
    refuses: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)

    def follow(self, ended: threading.Event) -> None:
        while not ended.wait(1):
            wanted = self.cluster.on("ctl1", "cat", _WANTED, expect=None).splitlines()
            for line in wanted[len(self.done) :]:
                kind, node = line.split()
                # Also what did not come in time: for Slurm it comes when it has booted once more.
                if kind != "on":
                    power_off(self.cluster.name, node)
                elif node not in self.refuses:
                    threading.Thread(target=power_on, args=(self.cluster.name, node)).start()
                self.done.append(line)


@contextmanager
def _cloud(cluster: Cluster) -> Iterator[Cloud]:
    cloud, ended = Cloud(cluster), threading.Event()
    thread = threading.Thread(target=cloud.follow, args=(ended,))
    thread.start()
    try:
        yield cloud
    finally:
        ended.set()
        thread.join()


@pytest.fixture(scope="module", params=RELEASES)
def saving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cluster whose nodes are switched off and on: node1 is a machine, node2 of a cloud."""
    release = str(request.param)
    with booted("power", tmp_path_factory, "--nodes", "2", "--monitoring", release=release) as made:
        with (made.directory / "group_vars/slurm-metric.yml").open("a") as settings:
            settings.write("prometheus_scrape_interval: 2s\nprometheus_evaluation_interval: 2s\n")
        with (made.directory / "group_vars/all.yml").open("a") as settings:
            settings.write("slurm_metrics_interval: 10\n")
        made.deploy()
        hosts = made.directory / "host_vars"
        hosts.mkdir(exist_ok=True)
        (hosts / "ctl1.yml").write_text(json.dumps(SAID))
        # A container is up for as long as its host, and Slurm waits for a boot: slurmd is to tell of one.
        own = 'slurmd_options: "-b"\n'
        (hosts / "node1.yml").write_text(f"{own}slurmd_power_saving: machine\n")
        (hosts / "node2.yml").write_text(f"{own}slurmd_power_saving: cloud\n")
        with _cloud(made) as cloud:
            made.deploy("--yes")
            yield cloud


def _words(cluster: Cluster, node: str) -> set[str]:
    shown = cluster.on("ctl1", "scontrol", "--oneliner", "show", "node", node)
    (state,) = [word for word in shown.split() if word.startswith("State=")]
    return {*state.removeprefix("State=").split("+")}


def _wait_until_off(cloud: Cloud, *nodes: str) -> None:
    def are_off() -> bool:
        return all(
            cloud.cluster.is_off(node) and "POWERED_DOWN" in _words(cloud.cluster, node) for node in nodes
        )

    wait_until(f"{nodes} are off", are_off, _SWITCHED)


def test_nodes_that_no_job_needs_are_switched_off(saving: Cloud) -> None:
    _wait_until_off(saving, "node1", "node2")
    assert "CLOUD" in _words(saving.cluster, "node2")
    # Also for those who are no admins.
    shown = saving.cluster.as_user("sinfo --noheader --Node --format '%N %t'")
    assert {*shown.split("\n")} >= {"node1 idle~", "node2 idle~"}


def test_nothing_is_wrong_with_them(saving: Cloud) -> None:
    cluster = saving.cluster
    said = cluster.deploy()
    assert "0 changes" in said.stdout
    assert "node[1-2]: warning: left out: Slurm has switched it off" in said.stdout + said.stderr
    assert "nothing to change" in cluster.plan()
    assert cluster.check()["hosts"].keys() == {"ctl1", "login1"}
    hosts = cluster.status()
    assert {name: hosts[name]["reach"] for name in ("node1", "node2")} == {
        "node1": "powered down",
        "node2": "powered down",
    }


def test_a_validation_measures_what_is_there(saving: Cloud) -> None:
    """No job has them come."""
    found = validated(saving.cluster, "--quick", expect=0)
    places = {verdict["where"] for verdict in found["reachable"]["verdicts"]}
    assert places == {"ctl1", "login1"}
    assert saving.cluster.is_off("node1")
    assert saving.cluster.is_off("node2")


def test_no_alert_is_about_them(saving: Cloud) -> None:
    """Their exporters do not answer, which Prometheus sees."""
    cluster = saving.cluster
    silent = 'count(up{job="node"} == 0)'
    wait_until("Prometheus misses both", lambda: _value(cluster, silent) == 2.0, seconds=120)
    for alert in (alert for chapter in CHAPTERS for alert in chapter.alerts):
        if alert.name in {"HostDown", "TargetDown", "SlurmNodeDown", "SlurmNodeNotResponding"}:
            assert _value(cluster, f"count({alert.expr})") is None, alert.name


def _value(cluster: Cluster, query: str) -> float | None:
    found = ask(page_of(cluster, 9090))(query)
    return float(found[0]["value"][1]) if found else None


def test_a_job_has_its_nodes_come(saving: Cloud) -> None:
    cluster = saving.cluster
    job = submit(cluster, "-N2 --mem=50M --output=both", "srun hostname")
    wait_for_job(cluster, job, "COMPLETED", seconds=_COMES_SECONDS + 120)
    assert sorted(cluster.as_user("cat both").split()) == ["node1", "node2"]
    assert {"on node1", "on node2"} <= {*saving.done}


def test_what_changed_meanwhile_comes_when_they_are_there(saving: Cloud) -> None:
    cluster = saving.cluster
    _wait_until_off(saving, "node1", "node2")
    with (cluster.directory / "group_vars/all.yml").open("a") as settings:
        settings.write("user_environment_variables: [{name: WHILE_OFF, value: seen}]\n")
    cluster.deploy()
    assert cluster.as_user("echo $WHILE_OFF") == "seen\n"
    # By srun from the login node, which waits for both.
    came = cluster.as_user("srun -N2 --mem=50M hostname", seconds=_COMES_SECONDS + 120)
    assert came.count("node") == 2
    # A node with a job is not switched off under the run.
    holding = submit(cluster, "-N2 --mem=50M", UNTIL_TOLD)
    wait_for_job(cluster, holding, "RUNNING")
    said = cluster.deploy()
    assert "left out" not in said.stdout + said.stderr
    cluster.as_user("touch stop")
    for node in ("node1", "node2"):
        assert "WHILE_OFF" in cluster.on(node, "sh", "-c", "cat /etc/profile.d/*")


def test_a_node_that_does_not_come_is_named_and_its_job_starts_anew(saving: Cloud) -> None:
    cluster = saving.cluster
    _wait_until_off(saving, "node1", "node2")
    saving.refuses.add("node2")
    job = submit(cluster, "-w node2 --mem=50M --requeue --output=anew", "hostname")
    wait_until("node2 is given up", lambda: "DOWN" in _words(cluster, "node2"), _COMES_SECONDS + 120)
    wait_until("the site was told", lambda: "failed node2" in saving.done, 60)
    (finding,) = cluster.status(expect=1)["node2"]["findings"]
    assert finding["reference"] == "node-down"
    assert "ResumeTimeout reached" in finding["message"]
    # It is wrong for whoever looks after it, and no run fails for it.
    assert "0 changes" in cluster.deploy().stdout
    saving.refuses.clear()
    cluster.on("ctl1", "scontrol", "update", "nodename=node2", "state=resume")
    # Slurm lets what it requeued wait for two minutes.
    wait_for_job(cluster, job, "COMPLETED", seconds=_COMES_SECONDS + 400)
    assert cluster.as_user("cat anew") == "node2\n"

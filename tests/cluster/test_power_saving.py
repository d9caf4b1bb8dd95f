"""Nodes that Slurm switches off and on by programs of the site's, a machine of its own and a cloud node.

Of a lab's containers none can start another: the programs write down what is wanted, and what stands for the
cloud reads that from outside.
"""

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import pytest

from deploy.lab.power import power_off, power_on
from deploy.monitoring.alerts import CHAPTERS
from tests.cluster.conftest import RELEASES
from tests.cluster.dashboard_queries import ask
from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, wait_until
from tests.cluster.test_monitoring import page_of
from tests.cluster.validated import validated

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_WANTED = "/var/log/slurm/wanted"
_LOCK = "/run/deploy-nodes.lock"
_IDLE_SECONDS, _COMES_SECONDS = 20, 240
_SWITCHED = _IDLE_SECONDS + 240
"""So long it may take on a busy machine until an idle node is off."""


def _program(kind: str) -> dict[str, str]:
    return {
        "text": f'#!/bin/sh\nfor node in $(scontrol show hostnames "$1"); do\n'
        f'    echo "{kind} $node $(date +%s)" >> {_WANTED}\ndone\n'
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
    """What does as the programs say; it ``refuses`` to start some.

    The run that ``turned_on`` power saving ended at that moment.
    """

    cluster: Cluster
    turned_on: float = 0.0
    refuses: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)

    def follow(self, ended: threading.Event) -> None:
        while not ended.wait(1):
            wanted = self.cluster.on("ctl1", "cat", _WANTED, expect=None).splitlines()
            for line in wanted[len(self.done) :]:
                kind, node, _ = line.split()
                # Also what did not come in time: for Slurm it comes when it has booted once more.
                if kind != "on":
                    power_off(self.cluster.name, node)
                elif node not in self.refuses:
                    threading.Thread(target=power_on, args=(self.cluster.name, node)).start()
                self.done.append(line)

    def has_done(self, kind: str, *nodes: str) -> bool:
        """Whether it was told so of all of these nodes, and did."""
        return {(kind, node) for node in nodes} <= {(*line.split()[:2],) for line in self.done}


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


@pytest.fixture(scope="module", params=[release for release in RELEASES if release != "bookworm"])
def saving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """A cluster whose nodes are switched off and on: node1 is a machine, node2 of a cloud.

    Slurm of Debian 12 is refused (molecule/slurmctld).
    """
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
        # A container is up for as long as its host, and Slurm waits for a boot: slurmd has to report one.
        own = 'slurmd_options: "-b"\n'
        (hosts / "node1.yml").write_text(f"{own}slurmd_power_saving: machine\n")
        (hosts / "node2.yml").write_text(f"{own}slurmd_power_saving: cloud\n")
        with _cloud(made) as cloud:
            wait_until("both were idle for too long", lambda: _are_idle(made), seconds=120)
            made.deploy("--yes")
            cloud.turned_on = time.time()
            yield cloud


def _are_idle(cluster: Cluster) -> bool:
    """Whether no node had a job for longer than power saving is to wait."""
    nodes = cluster.on("ctl1", "scontrol", "--oneliner", "show", "node")
    now, *moments = (
        datetime.fromisoformat(text)
        for text in (cluster.on("ctl1", "date", "+%FT%T").strip(), *re.findall(r"LastBusyTime=(\S+)", nodes))
    )
    return (now - max(moments)).total_seconds() > _IDLE_SECONDS


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


def test_the_run_that_turned_it_on_lost_no_node(saving: Cloud) -> None:
    """They had been idle for longer than they may be, and none was switched off until it ended."""
    hosts = saving.cluster.report()["hosts"]
    assert not [name for name in ("node1", "node2") if hosts[name]["unreachable"] or hosts[name]["failed"]]
    assert min(int(line.split()[2]) for line in saving.done if line.startswith("off")) >= int(
        saving.turned_on
    )


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
    assert saving.has_done("on", "node1", "node2")
    # And off again, as no other job needs them.
    _wait_until_off(saving, "node1", "node2")


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
    holding = submit(cluster, "-N2 --mem=50M", UNTIL_TOLD)
    wait_for_job(cluster, holding, "RUNNING")
    said = cluster.deploy()
    assert "left out" not in said.stdout + said.stderr
    for node in ("node1", "node2"):
        assert "WHILE_OFF" in cluster.on(node, "sh", "-c", "cat /etc/profile.d/*")
    assert "nothing to change" in cluster.plan()


def test_nodes_stay_on_while_a_run_is_at_work(saving: Cloud) -> None:
    """The job that kept them on ends under the run, which goes on for longer than they may be idle."""
    cluster, began = saving.cluster, time.time()
    with _run(cluster) as run:
        cluster.as_user("touch stop")
        assert run.stdout
        said = run.stdout.read()
        assert run.wait() == 0, said
    ended = time.time()
    offs = [int(line.split()[2]) for line in saving.done if line.startswith("off")]
    assert not [moment for moment in offs if began <= moment < int(ended)]
    _wait_until_off(saving, "node1", "node2")


def test_a_run_that_is_killed_holds_nothing(saving: Cloud) -> None:
    cluster = saving.cluster
    cluster.as_user("srun -N2 --mem=50M hostname", seconds=_COMES_SECONDS + 120)
    with _run(cluster) as run:
        run.send_signal(signal.SIGKILL)
    _wait_until_off(saving, "node1", "node2")
    assert "0 changes" in cluster.deploy().stdout


@contextmanager
def _run(cluster: Cluster) -> Iterator["subprocess.Popen[str]"]:
    """`deploy cluster` with everything to be gone through, from when Slurm leaves all nodes on."""
    command = [*DEPLOY, "cluster", str(cluster.inventory), "--output", "plain", "--no-validate", "--full"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:

        def is_held() -> bool:
            assert run.poll() is None, "it ended at once"
            held = cluster.on("ctl1", "sh", "-c", f"flock --nonblock {_LOCK} true || echo held").strip()
            shown = cluster.on("ctl1", "scontrol", "show", "config")
            (excepted,) = [line for line in shown.splitlines() if line.startswith("SuspendExcNodes")]
            return held == "held" and "node" in excepted

        wait_until("all nodes are left on", is_held, seconds=60)
        yield run


def test_a_node_that_does_not_come_is_named_and_its_job_starts_anew(saving: Cloud) -> None:
    cluster = saving.cluster
    _wait_until_off(saving, "node1", "node2")
    saving.refuses.add("node2")
    job = submit(cluster, "-w node2 --mem=50M --requeue --output=anew", "hostname")
    wait_until("node2 is given up", lambda: "DOWN" in _words(cluster, "node2"), _COMES_SECONDS + 120)
    wait_until("the site was told", lambda: saving.has_done("failed", "node2"), 60)
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

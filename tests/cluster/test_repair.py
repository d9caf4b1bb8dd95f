"""`deploy node repair`: nodes with faults of many kinds, mended without a hand, and one that cannot be."""

import json
import subprocess
from collections.abc import Iterator
from functools import partial

import pytest

from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

# The life of the other cluster is the longer one.
pytestmark = [pytest.mark.one_release("bookworm"), pytest.mark.more]

PROGRAMS = [
    {
        "name": "licence",
        "command": ["/usr/bin/test", "-e", "/srv/licence"],
        "repair": ["/usr/bin/touch", "/srv/licence"],
    },
    {"name": "tape", "command": ["/usr/bin/test", "-e", "/srv/tape"]},
]
NUMBER = "/var/lib/prometheus/node-exporter/test.prom"
RULES = """
gpu_exporter_source: none
prometheus_rules:
  - name: of the test
    rules:
      - alert: Broken
        expr: test_broken == 1
        labels: {severity: critical, repair: node}
        annotations: {summary: !unsafe "{{ $labels.instance }} is broken"}
"""
ALERTS = """
import json, urllib.request
with urllib.request.urlopen("http://127.0.0.1:9090/api/v1/alerts") as answer:
    print([alert["labels"]["alertname"] for alert in json.load(answer)["data"]["alerts"]])
"""
_ROWS = ("--parsable2", "--format", "NodeList,State")
WATCHED = {"node_health_programs": PROGRAMS, "node_health_mounts": [{"path": "/srv/data", "type": "tmpfs"}]}


@pytest.fixture(scope="module")
def watched(cluster: Cluster) -> Iterator[Cluster]:
    """Nodes of which a site wants more: a mount, and checks of its own."""
    own = [cluster.directory / f"host_vars/{node}.yml" for node in ("node1", "node2")]
    own[0].parent.mkdir(exist_ok=True)
    for node, path in zip(("node1", "node2"), own, strict=True):
        mount = "mkdir /srv/data; echo 'none /srv/data tmpfs defaults 0 0' >> /etc/fstab; mount /srv/data"
        cluster.on(node, "sh", "-c", f"touch /srv/licence /srv/tape; {mount}")
        path.write_text(json.dumps(WATCHED))
    cluster.deploy()
    yield cluster
    for node, path in zip(("node1", "node2"), own, strict=True):
        path.unlink()
        unmount = "umount /srv/data; rmdir /srv/data; sed -i '/srv.data/d' /etc/fstab"
        cluster.on(node, "sh", "-c", f"rm -f /srv/licence /srv/tape; {unmount}")
    cluster.deploy()


def _idle(cluster: Cluster) -> None:
    # Slurm may call a node that has just registered not responding until its next ping.
    wait_until("all nodes are idle", lambda: set(cluster.node_states().values()) == {"idle"}, seconds=120)


def _repair(
    cluster: Cluster, *options: str, reboots: tuple[str, ...] = (), expect: int = 0
) -> tuple[str, str]:
    """What it prints and says; a container that reboots has ended, and its power is what brings it back."""
    words = (*DEPLOY, "node", "repair", str(cluster.inventory), *options)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as going:
        for node in reboots:
            wait_until(f"{node} is off", partial(cluster.is_off, node), seconds=600)
            run(*DEPLOY, "lab", "start", "--name", cluster.name, node)
        printed, said = going.communicate(timeout=900)
    assert going.returncode == expect, (printed, said)
    return printed, said


def test_what_spares_jobs_is_mended_beside_them(watched: Cluster) -> None:
    _idle(watched)
    job = submit(watched, "-w node1", UNTIL_TOLD)
    wait_for_job(watched, job, "RUNNING")
    watched.on("node1", "sh", "-c", "systemctl stop chrony; umount /srv/data; rm /srv/licence")
    watched.on("node2", "systemctl", "stop", "slurmd")
    watched.on("node1", "node_health")
    assert watched.plain_states()["node1"] == "drng"
    printed, said = _repair(watched, "node[1-2]")
    assert printed.splitlines()[-1] == "repaired: node[1-2]"
    for line in (
        "node1: restart chrony: done",
        "node1: mount /srv/data: done",
        "node1: own licence: done",
        "node2: restart slurmd: done",
    ):
        assert line in said
    assert job_state(watched, job) == "RUNNING"
    assert watched.plain_states()["node1"] in {"mix", "alloc"}
    watched.as_user("touch stop")
    wait_for_job(watched, job, "COMPLETED")
    _idle(watched)


def test_a_lost_gpu_comes_back_by_a_reboot_and_what_slurm_drained_is_looked_at(watched: Cluster) -> None:
    watched.on("node1", "rm", "/dev/nvidia1")
    watched.on("node1", "node_health")
    drain = ("scontrol", "update", "nodename=node2", "state=drain", "reason=Kill task failed")
    watched.on("ctl1", *drain)
    printed, said = _repair(watched, "--auto", "--most", "2", reboots=("node1",))
    assert printed.splitlines()[-1] == "repaired: node[1-2]"
    assert "node2: look: done" in said
    assert "node1: reboot: done" in said
    # It had jobs of the validation's before anybody else's.
    assert "node1: jobs of deploy validate" in said
    rows = watched.on("ctl1", "sacct", "--noheader", "--allocations", "--user", "deploy-validate", *_ROWS)
    assert {tuple(row.split("|")) for row in rows.split()} >= {("node1", "COMPLETED")}
    assert "No reservations" in watched.on("ctl1", "scontrol", "show", "reservation")
    _idle(watched)


def test_what_cannot_be_mended_stays_drained_with_a_dossier(watched: Cluster) -> None:
    watched.on("node2", "rm", "/srv/tape")
    watched.on("node2", "node_health")
    _, said = _repair(watched, "--auto", reboots=("node2",), expect=1)
    assert "node2 stays drained: tape: exit code 1" in said
    (found,) = (watched.directory / ".deploy/dossiers").glob("*-node2.txt")
    assert found.stat().st_mode & 0o077 == 0
    text = found.read_text()
    assert "own tape: node_health_programs says no repair for tape" in text
    assert "reboot: done" in text
    assert "== slurmd" in text
    listed = run(*DEPLOY, "node", "list", str(watched.inventory)).stdout
    assert "until it is registered with Slurm and its health check passes" in listed
    _, said = _repair(watched, "--auto", expect=1)
    assert "nothing is left to try today: node2" in said
    # Whoever put it right says so by the same command.
    watched.on("node2", "touch", "/srv/tape")
    printed, _ = _repair(watched, "node2")
    assert printed.splitlines()[-1] == "repaired: node2"
    _idle(watched)


@pytest.fixture(scope="module")
def alarmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with one node, that Prometheus watches with a rule of the site's."""
    with booted("alarmed", tmp_path_factory, "--nodes", "1", "--gpus", "0", "--monitoring") as made:
        own = made.directory / "group_vars/all.yml"
        own.write_text(own.read_text() + RULES)
        made.deploy()
        yield made


def _fires(cluster: Cluster) -> bool:
    return "Broken" in cluster.on("ctl1", "python3", "-c", ALERTS)


def test_a_node_with_an_alert_is_out_of_service_until_that_is_quiet(alarmed: Cluster) -> None:
    _idle(alarmed)
    alarmed.on("node1", "sh", "-c", f"echo test_broken 1 > {NUMBER}")
    wait_until("the alert fires", lambda: _fires(alarmed), seconds=120)
    _, said = _repair(alarmed, "--auto", reboots=("node1",), expect=1)
    assert "node1: reboot: done" in said
    assert "node1 stays drained: alert Broken: node1 is broken" in said
    listed = run(*DEPLOY, "node", "list", str(alarmed.inventory)).stdout
    assert "repair: alert Broken: node1 is broken" in listed
    assert "these alerts are quiet: Broken" in listed
    _, said = _repair(alarmed, "--auto", expect=1)
    assert "its alert is to become quiet first: node1" in said
    alarmed.on("node1", "rm", NUMBER)
    wait_until("the alert is quiet", lambda: not _fires(alarmed), seconds=120)
    printed, said = _repair(alarmed, "--auto")
    assert "node1: checks of deploy validate" in said
    assert printed.splitlines()[-1] == "repaired: node1"
    _idle(alarmed)

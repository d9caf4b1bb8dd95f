"""Three nodes out of service and back: by whom, for what, and a few at a time."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until

pytestmark = pytest.mark.more

_TOLD = "/etc/node_health.json"
"""What a node's health check is told to look at."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with booted("batches", tmp_path_factory, "--nodes", "3", "--gpus", "2") as made:
        made.deploy()
        yield made


def test_five_drains_of_three_nodes_are_released_one_by_one(cluster: Cluster) -> None:
    """Two admins, a health check and somebody's scontrol; who releases his own wakes nobody else's."""
    wait_until("all nodes are idle", lambda: {*cluster.node_states().values()} == {"idle"}, seconds=120)
    cluster.on("node2", "mv", "/dev/nvidia1", "/dev/away")
    cluster.on("node2", "node_health")
    _node(cluster, "root", "drain", "node[1-2]", "--reason", "firmware")
    _node(cluster, "bob", "drain", "node[2-3]", "--reason", "cables")
    _node(cluster, "root", "drain", "node3", "--reason", "disk")
    cluster.on("ctl1", "scontrol", "update", "nodename=node1", "state=drain", "reason=fan")
    assert _held(cluster) == {
        "node1": ["firmware"],
        "node2": ["node_health", "firmware", "cables"],
        "node3": ["cables", "disk"],
    }
    assert "it stays drained" in _node(cluster, "bob", "resume", "node[2-3]")
    assert _held(cluster) == {"node1": ["firmware"], "node2": ["node_health", "firmware"], "node3": ["disk"]}
    assert {*cluster.plain_states().values()} == {"drain"}
    assert "you hold no drain of it" in _node(cluster, "bob", "resume", "node1", expect=1)
    _node(cluster, "root", "resume", "node3")
    assert cluster.plain_states() == {"node1": "drain", "node2": "drain", "node3": "idle"}
    said = _node(cluster, "root", "resume", "node[1-2]")
    assert "fan (root, not by" in said
    assert _held(cluster) == {}
    assert cluster.plain_states() == {"node1": "drain", "node2": "drain", "node3": "idle"}
    cluster.on("node2", "mv", "/dev/away", "/dev/nvidia1")
    cluster.on("node2", "node_health")
    assert cluster.plain_states() == {"node1": "drain", "node2": "idle", "node3": "idle"}
    cluster.on("ctl1", "scontrol", "update", "nodename=node1", "state=resume")


def test_a_change_comes_in_batches_and_stops_at_a_bad_one(cluster: Cluster) -> None:
    """A check of the site's own that node2 does not pass; node1's job ends before anything is done there."""
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    cluster.on("node1", "touch", "/srv/tape")
    cluster.on("node3", "touch", "/srv/tape")
    own = cluster.directory / "group_vars" / "slurm-node.yml"
    before = own.read_text()
    program = "{name: tape, command: [/usr/bin/test, -e, /srv/tape]}"
    own.write_text(f"{before}node_health_programs: [{program}]\n")
    words = (*DEPLOY, "cluster", str(cluster.inventory), "--batch", "1", "--no-validate", "--output", "plain")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as going:

        def drains() -> bool:
            assert going.poll() is None, going.communicate()
            return cluster.plain_states()["node1"] == "drng"

        wait_until("node1 drains", drains, seconds=300)
        assert not {"drain", "drng"} & {cluster.plain_states()[name] for name in ("node2", "node3")}
        assert job_state(cluster, job) == "RUNNING"
        cluster.as_user("touch stop")
        printed, said = going.communicate(timeout=600)
    assert going.returncode == 1, (printed, said)
    assert "node2 stays drained: tape: exit code 1" in said
    assert "done: node1; not begun, and as they were: node3" in said
    assert cluster.plain_states() == {"node1": "idle", "node2": "drain", "node3": "idle"}
    assert job_state(cluster, job) == "COMPLETED"
    assert "tape" not in cluster.on("node3", "cat", _TOLD)
    cluster.on("node2", "touch", "/srv/tape")
    run(*words, seconds=600)
    wait_until("all nodes are idle", lambda: {*cluster.node_states().values()} == {"idle"}, seconds=60)
    assert "tape" in cluster.on("node3", "cat", _TOLD)
    own.write_text(before)
    cluster.deploy()
    for node in ("node1", "node2", "node3"):
        cluster.on(node, "rm", "/srv/tape")


def _node(cluster: Cluster, who: str, verb: str, *words: str, expect: int = 0) -> str:
    command = (*DEPLOY, "node", verb, str(cluster.inventory), *words)
    return run("env", f"SUDO_USER={who}", *command, expect=expect).stdout


def _held(cluster: Cluster) -> dict[str, list[str]]:
    """By node the first words of the reasons in the ledger."""
    said = json.loads(run(*DEPLOY, "node", "list", str(cluster.inventory), "--json").stdout)
    return {
        node["name"]: [drain["why"].partition(":")[0] for drain in node["drains"]]
        for node in said
        if node["drains"]
    }

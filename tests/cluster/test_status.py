"""`deploy status` on a cluster that is well, and on one where something is wrong."""

import json
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from deploy import __version__
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until

# The life of the other cluster is the longer one.
pytestmark = pytest.mark.one_release("bookworm")

REASON = "bad disk | sdb=7 [x] é"


def _references(host: dict[str, Any]) -> list[str]:
    return [finding["reference"] for finding in host["findings"]]


def _lines(cluster: Cluster, expect: int) -> dict[str, str]:
    """The lines of the table, by host."""
    said = run(*DEPLOY, "status", str(cluster.inventory), expect=expect).stdout
    table, _, _ = said.partition("\n\n")
    return {line.split()[0]: line for line in table.splitlines()[1:]}


def test_all_is_well(cluster: Cluster) -> None:
    wait_until("all nodes are idle", lambda: set(cluster.node_states().values()) == {"idle"}, seconds=60)
    with site_lock(state_directory(cluster.directory)):  # as during a run
        hosts = cluster.status()
    runs = {path.name for path in (cluster.directory / ".deploy" / "runs").iterdir()}
    for host in hosts.values():
        assert (host["reach"], host["findings"]) == ("answered", [])
        assert host["converged"]["version"] == __version__
        assert host["converged"]["run"] in runs
        assert host["clock"]["least"] <= 0 <= host["clock"]["most"]
    assert {name: host["slurm"] and host["slurm"]["state"] for name, host in hosts.items()} == {
        "ctl1": None,
        "login1": None,
        "node1": "idle",
        "node2": "idle",
    }
    assert hosts["node1"]["shortfalls"] == []
    services = {name: set(host["services"]) for name, host in hosts.items()}
    assert services["ctl1"] == {"chrony", "munge", "mariadb", "slurmdbd", "slurmctld"}
    assert services["node1"] == {"chrony", "munge", "slurmd"}
    assert set(cluster.status("--limit", "node2")) == {"node2"}


@pytest.fixture
def trouble(cluster: Cluster) -> Iterator[None]:
    """A node without slurmd, and one that lost a GPU and is drained."""
    cluster.on("node1", "systemctl", "stop", "slurmd")
    cluster.on("node2", "mv", "/dev/nvidia1", "/dev/hidden")
    cluster.on("ctl1", "scontrol", "update", "nodename=node2", "state=drain", f"reason={REASON}")
    yield
    cluster.on("node2", "mv", "/dev/hidden", "/dev/nvidia1")
    cluster.on("ctl1", "scontrol", "update", "nodename=node2", "state=resume")
    cluster.on("node1", "systemctl", "start", "slurmd")
    wait_until("all nodes are idle", lambda: set(cluster.node_states().values()) == {"idle"}, seconds=60)


@pytest.mark.usefixtures("trouble")
def test_what_is_wrong_is_seen_in_the_line_of_its_host(cluster: Cluster) -> None:
    hosts = cluster.status(expect=1)
    # When Slurm notices is Slurm's.
    assert [found for found in _references(hosts["node1"]) if found != "node-down"] == ["service-down"]
    assert hosts["node1"]["services"]["slurmd"]["active"] == "inactive"
    assert _references(hosts["node2"]) == ["hardware-below-contract", "node-drained"]
    assert hosts["node2"]["shortfalls"] == ["gpus: the contract says 2, the machine shows 1"]
    assert (hosts["node2"]["slurm"]["state"], hosts["node2"]["slurm"]["reason"]) == ("drained", REASON)
    assert _references(hosts["ctl1"]) == _references(hosts["login1"]) == []
    lines = _lines(cluster, expect=1)
    assert list(lines) == ["node1", "node2", "ctl1", "login1"]
    assert re.match(r"node1 +(idle|down)\*? +no slurmd +ok ", lines["node1"])
    assert re.match(r"node2 +drained +ok +less gpus ", lines["node2"])


def test_drains_of_a_node_are_kept_apart(cluster: Cluster) -> None:
    node = partial(_node, cluster)
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    said = node("drain", "node[1-2]", "--reason", "firmware")
    assert said.splitlines() == ["drained: node[1-2]", f"node1: runs until they end: {job} (alice)"]
    (found,) = cluster.status("--limit", "node2", expect=1)["node2"]["findings"]
    assert (found["reference"], found["hint"].split(" --by ")[0]) == (
        "node-drained",
        f"deploy node resume {cluster.inventory} node2",
    )
    cluster.on("ctl1", "scontrol", "update", "nodename=node2", "state=drain", f"reason={REASON}")
    assert f"it stays drained:\n  {REASON} (root, not by" in node("resume", "node2")
    assert "you hold no drain of it" in node("resume", "node2", expect=1)
    assert cluster.plain_states()["node2"] == "drain"
    cluster.on("ctl1", "scontrol", "update", "nodename=node2", "state=resume")
    assert "in service: node1" in node("resume", "node1")
    held = json.loads(node("list", "--json"))
    assert [(each["name"], each["drains"]) for each in held if each["drains"]] == []
    assert job_state(cluster, job) == "RUNNING"
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED")


def test_a_planned_drain_lets_short_jobs_start_and_no_long_ones(cluster: Cluster) -> None:
    said = _node(cluster, "drain", "node2", "--reason", "firmware", "--within", "2h")
    assert said.startswith("reserved from ")
    long = submit(cluster, "-w node2 -t 180", "true")
    short = submit(cluster, "-w node2 -t 5", "true")
    wait_for_job(cluster, short, "COMPLETED", seconds=120)
    assert job_state(cluster, long) == "PENDING"
    assert "node2: your reservation is released" in _node(cluster, "resume", "node2")
    assert "ReservationName" not in cluster.on("ctl1", "scontrol", "show", "reservation")
    wait_for_job(cluster, long, "COMPLETED", seconds=120)


def test_jobs_that_stand_in_the_way_are_named_and_requeued(cluster: Cluster) -> None:
    job = submit(cluster, "-w node1 --requeue", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    words = ("node", "drain", str(cluster.inventory), "node1", "--reason", "smoke", "--force")
    assert f"{job} (alice) [would-lose-jobs]" in run(*DEPLOY, *words, expect=3).stderr
    assert job_state(cluster, job) == "RUNNING"
    assert cluster.plain_states()["node1"] in {"mix", "alloc"}
    said = run(*DEPLOY, *words, "--yes", "--wait")
    assert f"requeued: {job}" in said.stderr
    queued = cluster.on("ctl1", "squeue", "--noheader", "--format", "%T", "--jobs", job)
    assert queued.strip() == "PENDING"
    cluster.on("ctl1", "scancel", job)
    _node(cluster, "resume", "node1")


def test_nodes_reboot_in_turn_and_stop_at_one_that_stays_away(cluster: Cluster) -> None:
    words = ("node", "reboot", str(cluster.inventory), "node[1-2]", "--reason", "kernel")
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    with subprocess.Popen((*DEPLOY, *words), stdout=subprocess.PIPE, text=True) as going:
        wait_until("node1 drains", lambda: cluster.node_states()["node1"] == "drng", seconds=60)
        assert cluster.plain_states()["node2"] == "idle"
        cluster.as_user("touch stop")
        # A container that reboots has ended; its power is what brings it back.
        for node in ("node1", "node2"):
            wait_until(f"{node} is off", partial(cluster.is_off, node), seconds=120)
            run(*DEPLOY, "lab", "start", "--name", cluster.name, node)
        said, _ = going.communicate(timeout=300)
    assert (going.returncode, said) == (0, "rebooted: node[1-2]\n")
    assert job_state(cluster, job) == "COMPLETED"
    # Slurm may call a node that has just registered not responding until its next ping.
    wait_until("all nodes are idle", lambda: set(cluster.node_states().values()) == {"idle"}, seconds=60)
    said = run(*DEPLOY, *words, "-e", "reboot_timeout_minutes=0", expect=1).stderr
    assert "not begun, and as they were: node2 [batch-stopped]" in said
    assert "node1 stays drained: it" in said
    wait_until("node1 is off", partial(cluster.is_off, "node1"), seconds=120)
    run(*DEPLOY, "lab", "start", "--name", cluster.name, "node1")
    (held,) = (node for node in json.loads(_node(cluster, "list", "--json")) if node["drains"])
    assert (held["name"], held["drains"][0]["why"].startswith("reboot: kernel: it ")) == ("node1", True)
    assert "in service: node1" in _node(cluster, "resume", "node1")
    wait_until("all nodes are idle", lambda: set(cluster.node_states().values()) == {"idle"}, seconds=120)


@pytest.fixture
def other_keys(cluster: Cluster) -> Iterator[str]:
    """node2 with a new ssh host key, of which this is the file; it gets its own again.

    `deploy lab up` knows its machines by the keys that it gave them.
    """
    key = "/etc/ssh/ssh_host_ed25519_key"
    known = cluster.directory / ".lab/known_hosts"
    before = known.read_text()
    new = f"mkdir /root/kept; mv {key}* /root/kept; ssh-keygen -q -t ed25519 -N '' -f {key}"
    cluster.on("node2", "sh", "-c", f"{new}; systemctl restart ssh")
    yield key
    cluster.on("node2", "sh", "-c", "mv /root/kept/* /etc/ssh; rmdir /root/kept; systemctl restart ssh")
    known.write_text(before)


def test_a_node_that_was_installed_anew_is_taken_by_its_fingerprint(
    cluster: Cluster, other_keys: str
) -> None:
    contract = cluster.directory / "hardware.yml"
    before = contract.read_text()
    contract.write_text(re.sub(r"(node2: .*tmp_disk_mb: )\d+", r"\g<1>1", before))
    assert contract.read_text() != before
    cluster.on("node2", "rm", "-r", "/var/lib/deploy", "/etc/munge/munge.key")
    words = ("node", "replace", str(cluster.inventory), "node2")
    said = run(*DEPLOY, *words, "--fingerprint", f"SHA256:{'A' * 43}", expect=1).stderr
    assert "node2: it has other host keys than SHA256:AAAA" in said
    assert (contract.read_text() == before, _states(cluster, "node2")) == (False, {"drain"})
    fingerprint = cluster.on("node2", "ssh-keygen", "-lf", f"{other_keys}.pub").split()[1]
    came = run(*DEPLOY, *words, "--fingerprint", fingerprint, "--output", "plain", seconds=900).stdout
    assert came.splitlines()[-1] == "replaced: node2"
    assert contract.read_text() == before
    # Slurm's controller asks a node again that comes back, and marks it until it has.
    wait_until("node2 is idle", lambda: _states(cluster, "node2") == {"idle"}, seconds=120)
    assert cluster.as_user("srun --quiet -w node2 hostname").strip() == "node2"
    said = run(*DEPLOY, "node", "rename", str(cluster.inventory), "node2", "node9", expect=2).stderr
    assert "node-not-renamed" in said


def _states(cluster: Cluster, node: str) -> set[str]:
    return {cluster.plain_states()[node]}


def _node(cluster: Cluster, verb: str, *words: str, expect: int = 0) -> str:
    """`deploy node`."""
    return run(*DEPLOY, "node", verb, str(cluster.inventory), *words, expect=expect).stdout


def test_a_controller_that_does_not_run_is_everybodys_trouble(cluster: Cluster) -> None:
    cluster.on("ctl1", "systemctl", "stop", "slurmctld")
    hosts = cluster.status("--limit", "node1", expect=1)
    assert {name: _references(host) for name, host in hosts.items()} == {
        "ctl1": ["service-down"],
        "node1": [],
    }
    assert hosts["node1"]["slurm"] is None
    cluster.on("ctl1", "systemctl", "start", "slurmctld")
    wait_until("all nodes are idle", lambda: set(cluster.node_states().values()) == {"idle"}, seconds=60)


def test_a_node_without_power(cluster: Cluster) -> None:
    run(*DEPLOY, "lab", "stop", "--name", cluster.name, "node2")
    try:
        assert _references(cluster.status(expect=4)["node2"]) == ["host-unreachable"]
        wait_until("Slurm has lost node2", lambda: cluster.node_states()["node2"] == "down*", seconds=120)
        hosts = cluster.status(expect=4)
        assert _references(hosts["node2"]) == ["host-unreachable"]
        assert hosts["node2"]["slurm"]["reason"] == "Not responding"
        assert re.match(r"node2 unreachable +down\* ", _lines(cluster, expect=4)["node2"])
    finally:
        run(*DEPLOY, "lab", "start", "--name", cluster.name, "node2")


def test_a_site_that_is_wrong_is_not_asked(cluster: Cluster) -> None:
    said = run(*DEPLOY, "status", str(cluster.inventory), "-e", "slurmctld_partitons=x", expect=2).stderr
    assert "unknown-variable" in said

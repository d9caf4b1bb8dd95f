"""A cluster that is watched: all targets answer, a new node does at once, a fault is told and taken back."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.faults import WATCHED
from tests.cluster.lab_cluster import Cluster, wait_until
from tests.cluster.validated import expect_found, validated

WEBHOOK = Path(__file__).parents[2] / "molecule/shared/webhook.py"
NOTES = "/srv/told"
SETTINGS = """
prometheus_scrape_interval: 2s
prometheus_evaluation_interval: 2s
prometheus_rules:
  - name: of the test
    rules:
      - alert: SlurmdStopped
        expr: node_systemd_unit_state{{name="slurmd.service", state="active"}} == 0
        labels: {{severity: critical}}
        annotations: {{summary: !unsafe "slurmd does not run on {{{{ $labels.instance }}}}"}}
alertmanager_group_wait: 1s
alertmanager_group_interval: 1s
alertmanager_receivers:
  - name: test
    webhook_configs:
      - url: http://{webhook}:9999/
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with one node, whose alerts go to its login node."""
    made = Cluster("test-watched", tmp_path_factory.mktemp("watched"), "trixie")
    try:
        made.up("--release", "trixie", "--nodes", "1", "--gpus", "0", "--monitoring")
        found = re.search(r"^login1 .*ansible_host=(\S+)", made.inventory.read_text(), re.MULTILINE)
        assert found
        program = WEBHOOK.read_text()
        run = ("systemd-run", "--unit=webhook", "python3", "-c", program, "0.0.0.0", "9999", NOTES)  # noqa: S104
        made.on("login1", *run)
        variables = made.directory / "group_vars/slurm-metric.yml"
        variables.write_text(variables.read_text() + SETTINGS.format(webhook=found[1]))
        variables.chmod(0o600)  # receivers may have tokens in them
        made.deploy()
        yield made
    finally:
        made.down()


def asked(cluster: Cluster, path: str) -> Any:  # noqa: ANN401 - whatever Prometheus answers
    """What Prometheus answers, asked on its host; nothing while it does not."""
    address = cluster.on("ctl1", "hostname", "--all-ip-addresses").split()[0]
    program = (
        f"import urllib.request as u; print(u.urlopen('http://{address}:9090/api/v1/{path}').read().decode())"
    )
    return json.loads(cluster.on("ctl1", "python3", "-c", program))["data"]


def targets(cluster: Cluster) -> dict[tuple[str, str], str]:
    """Job and instance of every target -> whether it answers."""
    active = asked(cluster, "targets?state=active")["activeTargets"]
    return {(target["labels"]["job"], target["labels"]["instance"]): target["health"] for target in active}


def start(cluster: Cluster) -> str:
    return cluster.on(
        "ctl1", "systemctl", "show", "--property=InactiveExitTimestampMonotonic,MainPID", "prometheus"
    )


def told(cluster: Cluster) -> list[tuple[str, str, str]]:
    """Status, name and host of every alert that was delivered."""
    lines = cluster.on("login1", "cat", NOTES, expect=None).splitlines()
    messages = [json.loads(line.partition(" ")[2]) for line in lines]
    return [
        (alert["status"], alert["labels"]["alertname"], alert["labels"]["instance"])
        for message in messages
        for alert in message["alerts"]
    ]


def test_all_targets_answer(watched: Cluster) -> None:
    wait_until("all answer", lambda: set(targets(watched).values()) == {"up"}, 60)
    nodes = {instance for job, instance in targets(watched) if job == "node"}
    assert nodes == {"ctl1", "login1", "node1"}
    assert {"node", "prometheus", "alertmanager"} <= {job for job, _ in targets(watched)}


def test_a_rerun_changes_nothing(watched: Cluster) -> None:
    watched.deploy("--full")
    assert not any(host["changed"] for host in watched.report()["hosts"].values())


def test_a_new_node_is_asked_without_a_restart(watched: Cluster) -> None:
    before = start(watched)
    watched.up("--nodes", "2", "--write-inventory")
    watched.deploy("--limit", "node2")
    wait_until("node2 answers", lambda: targets(watched).get(("node", "node2")) == "up", 60)
    assert start(watched) == before


def test_a_stopped_daemon_is_told_and_taken_back(watched: Cluster) -> None:
    watched.on("node1", "systemctl", "stop", "slurmd")
    wait_until("it is told", lambda: ("firing", "SlurmdStopped", "node1") in told(watched), 60)
    watched.on("node1", "systemctl", "start", "slurmd")
    wait_until("it is taken back", lambda: ("resolved", "SlurmdStopped", "node1") in told(watched), 60)
    assert {(name, host) for _, name, host in told(watched)} == {("SlurmdStopped", "node1")}


def test_a_watched_cluster_passes(watched: Cluster) -> None:
    names = ("prometheus", "targets", "alerts", "alertmanager", "grafana", "portals")
    found = validated(watched, *(word for name in names for word in ("--only", name)), expect=0)
    outcomes = {name: check["outcome"] for name, check in found.items()}
    assert outcomes == {**dict.fromkeys(names, "passed"), "grafana": "not applicable"}


@pytest.mark.parametrize("group", WATCHED)
def test_every_fault_is_found_where_it_is(watched: Cluster, group: str) -> None:
    expect_found(watched, WATCHED[group])

"""Hosts that are changed behind deploy's back: every change is named, and put right by the next run.

DEPLOY_DRIFT_ROUNDS is the number of rounds; each makes about forty changes, which DEPLOY_DRIFT_SEED decides.
"""

import fnmatch
import json
import os
import random
from collections.abc import Iterator

import pytest

from tests.cluster.lab_cluster import Cluster
from tests.cluster.mutations import Records, mutations

# The life of the other cluster is the longer one.
pytestmark = [pytest.mark.one_release("bookworm"), pytest.mark.more]

ROUNDS = int(os.environ.get("DEPLOY_DRIFT_ROUNDS", "1"))
SEED = int(os.environ.get("DEPLOY_DRIFT_SEED", "1"))
HOSTS = ("ctl1", "login1", "node1", "node2")
MORE = {
    "login1": {"firewall_admin_networks": ["10.0.0.0/8"]},
    "ctl1": {
        "slurm_accounts_users": [
            {"name": "alice", "accounts": ["research"]},
            {"name": "bob", "accounts": ["research"], "fairshare": 5, "max_jobs": 9},
        ]
    },
}
"""What a lab does not have by itself, and can drift."""
LEFT_BY_THE_FIREWALL = ("/etc/deploy-firewall.nft", "/etc/systemd/system/deploy-firewall.service")


@pytest.fixture(scope="module", autouse=True)
def _more_that_can_drift(cluster: Cluster) -> Iterator[None]:
    files = {cluster.directory / f"host_vars/{host}.yml": variables for host, variables in MORE.items()}
    for path, variables in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(variables))
    cluster.deploy()
    yield
    for path in files:
        path.unlink()
    cluster.on("login1", "systemctl", "disable", "--now", "deploy-firewall")
    # Status names what stays of it until somebody removes it, and tests that come later expect no finding.
    cluster.on("login1", "rm", *LEFT_BY_THE_FIREWALL)
    cluster.deploy()
    assert cluster.status()["login1"]["findings"] == []


@pytest.mark.parametrize("number", range(ROUNDS))
def test_every_change_is_named_and_put_right(cluster: Cluster, number: int) -> None:
    before = {host: _recorded(cluster, host) for host in HOSTS}
    done = list(mutations(random.Random(SEED + number), before))  # noqa: S311 - no secret
    for mutation in done:
        cluster.on(mutation.host, "sh", "-c", mutation.command)
    said = _drift(cluster)
    missed = [each for each in done if not fnmatch.filter(said.get(each.host, ()), f"{each.expected}*")]
    assert missed == []
    cluster.deploy("--yes")
    assert _drift(cluster) == {}
    # The record alone would also agree with a state that the run took for right.
    changed = {host: _changed(before[host], _recorded(cluster, host)) for host in HOSTS}
    assert not any(changed.values()), changed
    for host in HOSTS:
        assert "Nice=1" not in cluster.on(
            host, "sh", "-c", "cat /etc/systemd/system/*.d/* 2>/dev/null || true"
        )
    cluster.deploy("--full", "--check")
    assert not any(host["changed"] for host in cluster.report()["hosts"].values())


def test_what_nobody_touched_has_not_drifted(cluster: Cluster) -> None:
    for _ in range(max(ROUNDS, 3)):
        cluster.as_user("srun -N2 true; sbatch --wrap true")
        cluster.deploy()
        report = cluster.report()
        assert all(host["verified"] and not host["ok"] for host in report["hosts"].values())
        assert _drift(cluster) == {}


def test_what_others_write_against_a_block_is_named_until_it_is_gone(cluster: Cluster) -> None:
    """/etc/hosts is written in place: podman binds it into its machines."""
    address = "10.99.99.99"
    line = f"/etc/hosts:1 gives login1 the address {address}: remove the name from this line"
    cluster.on(
        "node1",
        "sh",
        "-c",
        f"cat /etc/hosts > /root/hosts; (echo {address} login1; cat /root/hosts) > /etc/hosts",
    )
    for _ in range(2):
        assert line in _drift(cluster)["node1"]
        said = cluster.deploy("--yes", expect=1).stdout
        assert "[name-resolves-elsewhere]" in said
        assert "/etc/hosts:1" in said
    cluster.on("node1", "sh", "-c", "cat /root/hosts > /etc/hosts")
    pam = "account sufficient pam_permit.so"
    cluster.on("node1", "sed", "-i", f"0,/^account/s//{pam}\\n&/", "/etc/pam.d/sshd")
    for _ in range(2):
        (said,) = [each for each in _drift(cluster)["node1"] if "pam_permit.so" in each]
        assert said.startswith("/etc/pam.d/sshd:")
        assert f"node1: {said}" in cluster.deploy("--yes").stdout
    cluster.on("node1", "sed", "-i", f"/^{pam}/d", "/etc/pam.d/sshd")
    cluster.deploy("--yes")
    assert _drift(cluster) == {}


def _recorded(cluster: Cluster, host: str) -> Records:
    """What the host's records say of it, of all phases together."""
    lines = cluster.on(
        host, "sh", "-c", 'for record in /var/lib/deploy/converged/*.json; do cat "$record"; echo; done'
    )
    found: dict[str, dict[str, object]] = {}
    for line in filter(None, lines.splitlines()):
        record = json.loads(line)
        for kind, states in record["managed"].items():
            found.setdefault(kind, {}).update(states)
        found.setdefault("probes", {}).update({probe["name"]: probe["state"] for probe in record["probes"]})
    return found


def _changed(before: Records, after: Records) -> list[str]:
    """What a host's records say otherwise, and how."""
    return [
        f"{kind} {name}: was {before.get(kind, {}).get(name)}, is {after.get(kind, {}).get(name)}"
        for kind in sorted({*before, *after})
        for name in sorted({*before.get(kind, {}), *after.get(kind, {})})
        if before.get(kind, {}).get(name) != after.get(kind, {}).get(name)
    ]


def _drift(cluster: Cluster) -> dict[str, list[str]]:
    hosts = cluster.status(expect=None)
    return {name: host["record"]["drift"] for name, host in hosts.items() if host["record"]["drift"]}

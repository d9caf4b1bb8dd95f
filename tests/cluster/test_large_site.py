"""A cluster deployed by Ansible as it is, and what Slurm says of ten thousand nodes that it does not have."""

import json
from collections.abc import Iterator

import pytest

from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run

pytestmark = pytest.mark.more

PLAIN = "--plain-ansible"
NODES = {f"big{n:05}": f"10.200.{n // 256}.{n % 256}" for n in range(1, 10_001)}
HARDWARE = {
    "cpus": 64,
    "sockets": 2,
    "cores_per_socket": 16,
    "threads_per_core": 2,
    "memory_mb": 512_000,
    "gpus": [{"type": "h100", "count": 8}],
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster whose controller judges the configuration, deployed with nothing of ours in Ansible."""
    with booted("large", tmp_path_factory, "--nodes", "1") as made:
        made.deploy(PLAIN)
        yield made


def test_ansible_as_it_is_deploys_a_cluster_and_then_changes_nothing(small: Cluster) -> None:
    assert small.report()["outcome"] == "converged"
    assert all(host["changed"] for host in small.report()["hosts"].values())
    assert small.as_user("srun hostname") == "node1\n"
    small.deploy(PLAIN)
    assert [(host["changed"], host["ok"]) for host in small.report()["hosts"].values()] == [(0, 0)] * 3
    small.deploy(PLAIN, "--full", "--limit", "ctl1")
    hosts = small.report()["hosts"]
    assert hosts["ctl1"]["ok"]
    assert not any(host["changed"] for host in hosts.values())


def test_a_real_slurmctld_starts_with_ten_thousand_nodes(small: Cluster) -> None:
    """In a plan: a slurmctld of its own, which reaches nobody, takes the new files or refuses them."""
    large = small.directory / "large.ini"
    lines = "\n".join(f"{name} ansible_host={address}" for name, address in NODES.items())
    groups = f"\n[slurm-node:children]\nlarge\n\n[large]\n{lines}\n"
    large.write_text(small.inventory.read_text() + groups)
    (small.directory / "group_vars" / "large.yml").write_text(json.dumps({"slurmd_hardware": HARDWARE}))
    said = run(*DEPLOY, "plan", str(large), "--limit", "ctl1", "--json", expect=3, seconds=600).stdout
    plan = json.loads(said)
    assert plan["not_previewed"] == []
    (change,) = (change for change in plan["changes"] if change["role"] == "slurmctld")
    assert change["impact"] == "reconfigure"
    nodes = "+NodeName=big[00001-10000] "
    assert [line for line in change["diff"] if line.startswith(nodes) and " Gres=gpu:h100:8 " in line]
    judged = small.on("ctl1", "journalctl", "--no-pager", "--unit", "slurmctld-check-*")
    assert "Started slurmctld-check-" in judged
    assert "big" not in small.on("ctl1", "cat", "/etc/slurm/slurm.conf")

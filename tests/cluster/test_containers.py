"""Containers: the plugin that stands in reaches jobs on every node, submitted from everywhere."""

import pytest

from tests.cluster.faults import CONTAINERS
from tests.cluster.lab_cluster import Cluster
from tests.cluster.standin_containers import declare
from tests.cluster.validated import expect_found, validated

pytestmark = pytest.mark.one_release

IN_FORCE = "grep -c spank_pyxis /etc/slurm/plugstack.conf"


def test_a_limited_run_does_not_bring_the_plugin_into_force(cluster: Cluster) -> None:
    declare(cluster)
    cluster.deploy("--limit", "node1")
    assert cluster.on("ctl1", "sh", "-c", IN_FORCE, expect=1) == "0\n"
    assert cluster.as_user("srun -w node2 hostname") == "node2\n"


def test_containers_are_there_on_every_node_and_from_everywhere(cluster: Cluster) -> None:
    cluster.deploy()
    assert cluster.on("ctl1", "sh", "-c", IN_FORCE) == "1\n"
    nodes = sorted(cluster.node_states())
    for host in ("login1", "ctl1", "node1"):
        said = cluster.as_user(f"cd /; srun --quiet -N{len(nodes)} --container-image=x.sqsh true", host=host)
        image = "runtime_path=/run/pyxis container_scope=job image x.sqsh on"
        assert sorted(said.splitlines()) == [f"{image} {node}" for node in nodes]
    assert cluster.as_user("cd /; srun --quiet -w node1 echo plain") == "plain\n"
    # From the controller alone; the file is of the distribution.
    assert "spank" not in cluster.on("login1", "cat", "/etc/slurm/plugstack.conf", expect=None)


def test_a_setting_of_the_kernel_that_was_changed_is_named_and_put_right(cluster: Cluster) -> None:
    value = "/proc/sys/net/ipv4/ip_default_ttl"
    cluster.on("node1", "sh", "-c", f"echo 66 > {value}")
    named = "kernel setting net.ipv4.ip_default_ttl is 66, was 65"
    assert cluster.status(expect=1)["node1"]["record"]["drift"] == [named]
    cluster.deploy()
    assert cluster.on("node1", "cat", value) == "65\n"


def test_a_plugin_that_is_silently_ignored_is_found(cluster: Cluster) -> None:
    validated(cluster, "--only", "containers", "--only", "plugins", expect=0)
    expect_found(cluster, CONTAINERS)


def test_containers_need_nothing_more(cluster: Cluster) -> None:
    assert cluster.plan().splitlines() == ["plan: nothing to change"]

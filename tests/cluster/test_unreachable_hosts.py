"""Hosts that cannot be reached."""

import re

import pytest

from tests.cluster.lab_cluster import DEPLOY, Cluster, run


@pytest.mark.one_release
def test_an_unreachable_host_and_a_wrong_host_key_do_not_stop_the_others(cluster: Cluster) -> None:
    keys = cluster.directory / ".lab" / "known_hosts"
    good = keys.read_text()
    address = re.search(r"^node2 ansible_host=(\S+)", cluster.inventory.read_text(), re.MULTILINE)
    assert address
    lines = good.splitlines()
    other = next(line.split(" ", 1)[1] for line in lines if not line.startswith(f"{address.group(1)} "))
    swapped = [
        f"{address.group(1)} {other}" if line.startswith(f"{address.group(1)} ") else line for line in lines
    ]
    keys.write_text("\n".join(swapped) + "\n")
    run(*DEPLOY, "lab", "stop", "--name", cluster.name, "node3")
    try:
        said = cluster.deploy(expect=4).stdout
    finally:
        keys.write_text(good)
        run(*DEPLOY, "lab", "start", "--name", cluster.name, "node3")
    hosts = cluster.report()["hosts"]
    assert {name for name, host in hosts.items() if host["unreachable"]} == {"node2", "node3"}
    assert "node2" in said
    assert "ost key" in said
    assert hosts["node1"]["verified"]
    assert hosts["login1"]["verified"]

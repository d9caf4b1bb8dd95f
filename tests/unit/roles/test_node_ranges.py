from typing import Any

import pytest

from tests.unit.roles.loading import load_module

filters = load_module("roles/slurmctld/filter_plugins/node_ranges.py")
conf = load_module("roles/slurmctld/module_utils/slurm_conf.py")


def node(name: str, address: str, cpus: int = 4) -> dict[str, Any]:
    return {"name": name, "address": address, "hardware": {"cpus": cpus}}


@pytest.mark.parametrize(
    ("words", "folded"),
    [
        ([], ""),
        (["n1"], "n1"),
        (["n1", "n2", "n3"], "n[1-3]"),
        (["n1", "n3"], "n1,n3"),
        (["n9", "n10"], "n[9-10]"),
        (["n09", "n10"], "n[09-10]"),
        (["n09", "n010"], "n09,n010"),
        (["a1", "b2"], "a1,b2"),
        (["login", "n1"], "login,n1"),
        # Before 23.11 slurmctld does not start with r1-n[1-2]-ib.
        (["r1-n1-ib", "r1-n2-ib"], "r1-n1-ib,r1-n2-ib"),
        (["n1.example.org", "n2.example.org"], "n1.example.org,n2.example.org"),
        (["10.0.0.254", "10.0.0.255", "10.0.1.0"], "10.0.0.[254-255],10.0.1.0"),
        # Names need not be in the order of their addresses, which keep that of the names.
        (["10.0.0.3", "10.0.0.2"], "10.0.0.3,10.0.0.2"),
    ],
)
def test_hostlists_there_and_back(words: list[str], folded: str) -> None:
    assert filters.hostlist(words) == folded
    assert [*conf.hosts_of(folded)] == (words or [""])


def test_nodes_that_are_alike_are_one() -> None:
    nodes = [
        node("n10", "10.0.0.10"),
        node("n2", "10.0.0.2"),
        node("big", "10.0.0.99", 64),
        node("n1", "10.0.0.1"),
    ]
    assert [(one["name"], one["address"], one["hardware"]["cpus"]) for one in filters.in_ranges(nodes)] == [
        ("n[1-2],n10", "10.0.0.[1-2],10.0.0.10", 4),
        ("big", "10.0.0.99", 64),
    ]


def test_a_range_is_no_other_configuration_than_its_nodes() -> None:
    apart = "NodeName=n1 NodeAddr=10.0.0.8 CPUs=4\nNodeName=n2 NodeAddr=10.0.0.9 CPUs=4\n"
    assert conf.changed_parameters(apart, "NodeName=n[1-2] NodeAddr=10.0.0.[8-9] CPUs=4\n") == []
    assert conf.changed_parameters(apart, "NodeName=n[1-3] NodeAddr=10.0.0.[8-10] CPUs=4\n") == [
        "nodename=n3"
    ]
    moved = "NodeName=n[1-2] NodeAddr=10.0.0.8,10.0.0.7 CPUs=4\n"
    assert conf.changed_parameters(apart, moved) == ["nodename=n2"]


def test_who_leaves_a_range_takes_its_jobs_along() -> None:
    before, after = ("NodeName=n[1-3] CPUs=4\n", "NodeName=n[1-2] CPUs=4\n")
    (lost,) = conf.guarded({"slurm.conf": before}, {"slurm.conf": after})
    assert lost["nodes"] == ["n3"]

"""Host names as one expression, and back."""

import pytest

from deploy.site.node_lists import all_but, fold, slurm_list, unfold

KNOWN = ("ctl1", "fe80::1", "gpu-01", "gpu-02", "node1", "node2", "node3")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["node1"], "node1"),
        (["node2", "ctl1", "node1", "gpu-01", "gpu-02"], "ctl1,gpu-[01-02],node[1-2]"),
        ([f"node{number}" for number in range(1, 1001)], "node[1-1000]"),
        (["inventory.ini:3 [all", "node1"], "inventory.ini:3 [all, node1"),
    ],
)
def test_names_are_folded(names: list[str], expected: str) -> None:
    assert fold(names) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("node[1-3]", "node1,node2,node3"),
        ("ctl1,gpu-[01-02],node[1,3]", "ctl1,gpu-01,gpu-02,node1,node3"),
        ("slurm-node, !node[1-2]", "slurm-node,!node1,!node2"),
        ("slurm-node:!node[1-2]", "slurm-node,!node1,!node2"),
        ("slurm-node[0:1]:!node[1,3]", "slurm-node[0:1],!node1,!node3"),
        ("slurm-node:&node[1-2]", "slurm-node,&~(?:node1|node2)$"),
        ("all:&rack1", "all,&rack1"),
        ("fe80::1", "fe80::1"),
        # Ansible's own: a part of a group, a regular expression, a wildcard, a file, an intersection.
        *[
            (same, same)
            for same in ("slurm-node[0:2]", "slurm-node[0]", "~node[12]", "node*", "@file", "~a:b")
        ],
        # Not a host: whoever reads the message has to see what was typed.
        ("node[1-9]", "node[1-9]"),
        ("node[1-", "node[1-"),
    ],
)
def test_a_pattern_is_unfolded_where_its_hosts_are_known(pattern: str, expected: str) -> None:
    assert ",".join(unfold(pattern, KNOWN)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["n1", "n3", "n2"], "n[1-3]"),
        (["n2-ib", "n1-ib", "n9"], "n9,n2-ib,n1-ib"),
        (["r1n1", "r1n2", "r2n1", "r2n2"], "r1n[1-2],r2n[1-2]"),
    ],
)
def test_slurm_has_one_range_in_a_name_and_at_its_end(names: list[str], expected: str) -> None:
    assert slurm_list(names) == expected


def test_all_but_some_come_back_as_they_were() -> None:
    pattern = all_but(["node1", "node2", "ctl1"])
    assert pattern == "!ctl1,!node[1-2]"
    assert unfold(pattern, KNOWN) == ["!ctl1", "!node1", "!node2"]

"""Switches and blocks that are no tree, or name what is not there."""

from tests.unit.site.bad.site import variables

_LEAF = "{name: s1, nodes: ['node[1-2]']}"
_BOTH = """\
slurmctld_switches: [{name: s1, nodes: ['node[1-2]']}]
slurmctld_blocks: [{name: b1, nodes: ['node[1-2]']}]
"""

SITES = (
    variables(
        "switches and blocks",
        _BOTH,
        (
            "group_vars/all.yml:2: slurmctld_switches and slurmctld_blocks are both set, and Slurm goes by "
            "one of them [topology-contradiction]"
        ),
    ),
    variables(
        "a switch twice",
        "slurmctld_switches: [{name: s1, nodes: [node1]}, {name: s1, nodes: [node2]}]\n",
        "group_vars/all.yml:1: switch s1 is declared twice [topology-contradiction]",
    ),
    variables(
        "a switch with nothing",
        "slurmctld_switches: [{name: s1, nodes: ['node[1-2]']}, {name: s2}]\n",
        "group_vars/all.yml:1: switch s2 has neither nodes nor switches [topology-contradiction]",
    ),
    variables(
        "a switch with nodes and switches",
        "slurmctld_switches: [{name: s1, nodes: [node1]}, {name: s2, nodes: [node2], switches: [s1]}]\n",
        "group_vars/all.yml:1: switch s2 has nodes and switches [topology-contradiction]",
    ),
    variables(
        "a switch that is not there",
        "slurmctld_switches: [{name: s1, nodes: ['node[1-2]']}, {name: top, switches: [s1, s2]}]\n",
        "group_vars/all.yml:1: switch top names s2, which is no switch [topology-unknown-switch]",
    ),
    variables(
        "a switch below two",
        f"slurmctld_switches: [{_LEAF}, {{name: a, switches: [s1]}}, {{name: b, switches: [s1]}}]\n",
        "group_vars/all.yml:1: switch s1 is below a and below b [topology-contradiction]",
    ),
    variables(
        "a ring",
        f"slurmctld_switches: [{_LEAF}, {{name: a, switches: [b]}}, {{name: b, switches: [a]}}]\n",
        "group_vars/all.yml:1: switches are above each other: b -> a -> b [topology-contradiction]",
    ),
    variables(
        "a node of a switch that is not there",
        "slurmctld_switches: [{name: s1, nodes: ['node[1-3]']}]\n",
        "group_vars/all.yml:1: switch s1 names node3: not in [slurm-node] [topology-unknown-node]",
    ),
    variables(
        "a block's group without nodes",
        "slurmctld_blocks: [{name: b1, groups: [slurm-login]}, {name: b2, nodes: ['node[1-2]']}]\n",
        "group_vars/all.yml:1: block b1: group 'slurm-login' holds no compute node [topology-unknown-node]",
    ),
    variables(
        "a node in two blocks",
        "slurmctld_blocks: [{name: b1, nodes: ['node[1-2]']}, {name: b2, nodes: [node2]}]\n",
        "group_vars/all.yml:1: node2 is in block b1 and in b2 [topology-contradiction]",
    ),
    variables(
        "a node in none",
        "slurmctld_switches: [{name: s1, nodes: [node1]}]\n",
        (
            "group_vars/all.yml:1: warning: no switch has node2: a job gets it together with no other node "
            "[node-beside-topology]"
        ),
    ),
    variables(
        "sizes that are no powers of two",
        "slurmctld_blocks: [{name: b1, nodes: ['node[1-2]']}]\nslurmctld_block_sizes: [2, 6]\n",
        (
            "group_vars/all.yml:2: slurmctld_block_sizes has 6, which is not 2 times a power of two "
            "[topology-block-size]"
        ),
    ),
    variables(
        "a block that is too small",
        "slurmctld_blocks: [{name: b1, nodes: ['node[1-2]']}]\nslurmctld_block_sizes: [4]\n",
        (
            "group_vars/all.yml:1: block b1 has 2 nodes, fewer than the least of slurmctld_block_sizes, 4 "
            "[topology-block-size]"
        ),
    ),
    variables(
        "no licenses",
        "slurmctld_licenses: [{name: matlab, count: 0}]\n",
        (
            "group_vars/all.yml:1: slurmctld_licenses[0].count is 0, not a number from 1 to 4294967293 "
            "[invalid-value]"
        ),
    ),
)

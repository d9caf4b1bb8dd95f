"""Partitions that contradict the inventory or themselves."""

from tests.unit.site.bad.site import ALL, NODES, BadSite, variables

SITES = (
    variables(
        "two defaults",
        "slurmctld_partitions: [{name: a, default: true}, {name: b, default: true}]\n",
        "group_vars/all.yml:1: more than one default partition: a, b [several-default-partitions]",
    ),
    variables(
        "no default",
        "slurmctld_partitions: [{name: a}]\n",
        (
            "group_vars/all.yml:1: warning: no partition is the default: a job that names none is "
            "refused [no-default-partition]"
        ),
    ),
    variables(
        "one name twice",
        "slurmctld_partitions: [{name: a, default: true}, {name: a}]\n",
        "group_vars/all.yml:1: partition a is declared twice [duplicate-partition]",
    ),
    variables(
        "a node that is not there",
        "slurmctld_partitions: [{name: a, default: true}, {name: b, nodes: ['node[1-3]']}]\n",
        ("group_vars/all.yml:1: partition b names node3: not in [slurm-node] [partition-unknown-node]"),
    ),
    variables(
        "a range that is none",
        "slurmctld_partitions: [{name: a, default: true}, {name: b, nodes: ['node[1-']}]\n",
        (
            'group_vars/all.yml:1: partition b names node[1-: missing bracket: "node[1-" '
            "[partition-unknown-node]"
        ),
    ),
    variables(
        "a range beyond all clusters",
        "slurmctld_partitions: [{name: a, default: true}, {name: b, nodes: ['node[1-999999999]']}]\n",
        (
            "group_vars/all.yml:1: partition b names node[1-999999999]: more than 65536 nodes "
            "[partition-unknown-node]"
        ),
    ),
    variables(
        "a group without nodes",
        "slurmctld_partitions: [{name: a, default: true}, {name: b, groups: [slurm-login]}]\n",
        (
            "group_vars/all.yml:1: partition b: group 'slurm-login' holds no compute node "
            "[partition-without-nodes]"
        ),
    ),
    BadSite(
        "jobs that keep their GPUs when another one takes their place",
        (
            (
                "group_vars/all.yml:2: warning: slurmctld_preempt_mode suspends jobs whose place is taken, "
                "and a suspended job keeps its GPUs: a job that wants those of node1 waits until it has "
                "ended [preemption-keeps-gpus]"
            ),
        ),
        files={
            ALL: "slurmctld_preemption: partition\nslurmctld_preempt_mode: suspend\n",
            NODES: "slurmd_hardware: {gpus: [{type: a100, count: 4}]}\n",
        },
    ),
    variables(
        "a node in no partition",
        "slurmctld_partitions: [{name: a, default: true, nodes: [node1]}]\n",
        "group_vars/all.yml:1: warning: no partition has node2 [node-in-no-partition]",
    ),
    variables(
        "none",
        "slurmctld_partitions: []\n",
        "group_vars/all.yml:1: there is no partition, so no job could run [no-partition]",
    ),
    variables(
        "a default time beyond the limit",
        ('slurmctld_partitions: [{name: a, default: true, default_time: "2-00", max_time: "24:00:00"}]\n'),
        (
            "group_vars/all.yml:1: partition a: default_time 2-00 is longer than max_time 24:00:00, "
            "so a job that asks for no time is refused [partition-contradiction]"
        ),
    ),
    variables(
        "fewest above most nodes",
        "slurmctld_partitions: [{name: a, default: true, min_nodes: 3, max_nodes: 2}]\n",
        (
            "group_vars/all.yml:1: partition a: min_nodes 3 is more than max_nodes 2, so no job fits "
            "[partition-contradiction]"
        ),
    ),
    variables(
        "allowed and denied accounts",
        ("slurmctld_partitions: [{name: a, default: true, allow_accounts: [root], deny_accounts: [root]}]\n"),
        (
            "group_vars/all.yml:1: partition a: Slurm ignores deny_accounts where allow_accounts is "
            "set [partition-contradiction]"
        ),
    ),
    variables(
        "a further parameter that a key of the partition says",
        "slurmctld_partitions:\n  - {name: a, default: true, max_time: '60', parameters: {MAXTIME: 90}}\n",
        (
            "group_vars/all.yml:1: partition a: parameters has MAXTIME, which max_time says, too "
            "[parameter-written-twice]"
        ),
    ),
    variables(
        "a further parameter that every partition's line has",
        "slurmctld_partitions:\n  - {name: a, default: true, parameters: {Nodes: node1}}\n",
        (
            "group_vars/all.yml:1: partition a: parameters has Nodes, which nodes and groups "
            "says, too [parameter-written-twice]"
        ),
    ),
    variables(
        "a partition's further parameter in two cases",
        "slurmctld_partitions:\n  - {name: a, default: true, parameters: {LLN: 'YES', lln: 'NO'}}\n",
        (
            "group_vars/all.yml:1: partition a: parameters has lln, which LLN says, too "
            "[parameter-written-twice]"
        ),
    ),
)

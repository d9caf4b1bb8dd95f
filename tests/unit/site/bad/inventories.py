"""Groups, hosts and addresses that cannot be."""

from tests.unit.site.bad.site import NODES, BadSite

SITES = (
    BadSite(
        "two controllers without a directory that both mount",
        expected=(
            (
                "inventory.ini:3: login1 could not take over when ctl1 is gone, and the accounting database "
                "with it: a slurmctld that begins to lead asks it first [database-on-controller]"
            ),
            (
                "inventory.ini:3: login1 would take over from ctl1 without its state: no directory is named "
                "that all controllers mount [state-not-shared]"
            ),
        ),
        edits=(("[slurm-master]\nctl1\n", "[slurm-master]\nctl1\nlogin1\n"),),
    ),
    BadSite(
        "four controllers",
        expected=(
            (
                "inventory.ini:5: slurm-master holds 4 hosts; one leads, and two that stand by are enough "
                "[many-slurm-masters]"
            ),
        ),
        edits=(
            ("[slurm-master]\nctl1\n", "[slurm-master]\nctl1\nlogin1\nnode1\nnode2\n"),
            ("[slurm-login]", "[slurm-database]\ndb1\n[slurm-login]"),
            ("[slurm-cluster:children]", "[slurm-cluster:children]\nslurm-database"),
        ),
        files={"group_vars/all.yml": "slurmctld_state_save_location: /shared/slurm\n"},
    ),
    BadSite(
        "two databases, and a timer for backups of one host",
        expected=(
            (
                "group_vars/all.yml:1: a timer's backup keeps what is on one host, and the queue is on ctl1, "
                "the accounting database on login1 [backup-apart]"
            ),
            (
                "inventory.ini:4: slurm-database holds 2 hosts; it is one, or 3 with a vote: two that have "
                "the database, and an arbitrator [several-database-hosts]"
            ),
        ),
        edits=(("[slurm-login]", "[slurm-database]\nlogin1\nnode1\n[slurm-login]"),),
        files={
            "group_vars/all.yml": "backup_schedule: daily\nbackup_recipients:\n"
            "  - age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\n"
        },
    ),
    BadSite(
        "two hosts that watch",
        expected=(
            "inventory.ini:3: slurm-metric holds 2 hosts: each would send every alert [several-metric-hosts]",
        ),
        edits=(("[slurm-master]\n", "[slurm-metric]\nctl1\nlogin1\n[slurm-master]\n"),),
    ),
    BadSite(
        "numbers of many nodes beside Slurm's state",
        expected=(
            (
                "inventory.ini:2: warning: Prometheus's numbers of 50 nodes lie on ctl1 beside what Slurm "
                "cannot be without, and nothing limits them: each node may make 1 to 3 GB in 90 days "
                "[metrics-without-limit]"
            ),
        ),
        edits=(("node[1:2]", "node[1:50]"),),
    ),
    BadSite(
        "no controller",
        expected=(
            (
                "inventory.ini: the group slurm-master is missing or empty: no host would run slurmctld "
                "[no-slurm-master]"
            ),
        ),
        edits=(
            ("[slurm-master]\nctl1\n", "[slurm-master]\n"),
            ("ctl1 ansible_host=10.0.0.1\n", ""),
        ),
    ),
    BadSite(
        "no compute nodes",
        expected=(
            (
                "inventory.ini: the group slurm-node is missing or empty: no host would run jobs "
                "[no-slurm-node]"
            ),
        ),
        edits=(
            ("[slurm-node]\nnode[1:2]\n", "[slurm-node]\n"),
            ("node1 ansible_host=10.0.0.11\nnode2 ansible_host=10.0.0.12\n", ""),
        ),
        files={NODES: ""},
    ),
    BadSite(
        "a host in no group",
        expected=(
            "inventory.ini:7: stray is in no group, so nothing would be done with it [host-in-no-group]",
        ),
        edits=(("[slurm-master]", "stray\n\n[slurm-master]"),),
    ),
    BadSite(
        "a host in a group of no meaning",
        expected=(
            (
                "inventory.ini:8: warning: stray is in no group of the cluster, so nothing is done there "
                "[host-outside-cluster]"
            ),
        ),
        edits=(("[slurm-master]", "[lab]\nstray\n\n[slurm-master]"),),
    ),
    BadSite(
        "a group with an underscore",
        expected=(
            (
                "inventory.ini: the group [slurm_node] means nothing, so its hosts are not taken for "
                "those of [slurm-node] [misspelled-group]"
            ),
            (
                "inventory.ini:7: warning: node3 is in no group of the cluster, so nothing is done there "
                "[host-outside-cluster]"
            ),
        ),
        edits=(("[slurm-master]", "node3\n\n[slurm_node]\nnode3\n\n[slurm-master]"),),
    ),
    BadSite(
        "a group in the plural",
        expected=(
            (
                "inventory.ini: the group [slurm-logins] means nothing, so its hosts are not taken for "
                "those of [slurm-login] [misspelled-group]"
            ),
        ),
        edits=(
            ("[slurm-login]\n", "[slurm-logins]\n"),
            ("slurm-login\n", "slurm-logins\n"),
        ),
    ),
    BadSite(
        "a group named as a host",
        expected=(
            (
                "inventory.ini:4: node1 is a host and a group: a pattern or a group_vars file with this "
                "name means both [group-named-as-host]"
            ),
        ),
        edits=(("[slurm-master]", "[node1]\nnode2\n\n[slurm-master]"),),
    ),
    BadSite(
        "a host beside slurm-cluster",
        expected=(
            (
                "inventory.ini:3: login1 is not in [slurm-cluster], so what is set for the whole cluster "
                "does not reach there [host-outside-slurm-cluster]"
            ),
        ),
        edits=(
            (
                "[slurm-cluster:children]\nslurm-master\nslurm-login\n",
                "[slurm-cluster:children]\nslurm-master\n",
            ),
        ),
    ),
    BadSite(
        "one address twice",
        expected=("inventory.ini:5: node1 and node2 have the same address 10.0.0.11 [duplicate-address]",),
        edits=(("10.0.0.12", "10.0.0.11"),),
    ),
    BadSite(
        "one inner address twice",
        expected=("inventory.ini:5: node1 and node2 have the same address 192.168.0.1 [duplicate-address]",),
        edits=(
            ("10.0.0.11", "10.0.0.11 hosts_file_address=192.168.0.1"),
            ("10.0.0.12", "10.0.0.12 hosts_file_address=192.168.0.1"),
        ),
    ),
    BadSite(
        "a host with two addresses",
        expected=(
            (
                "inventory.ini:7: node1 has a second line with another address: 10.0.0.13 after "
                "10.0.0.11 [duplicate-host]"
            ),
        ),
        edits=(("[slurm-master]", "node1 ansible_host=10.0.0.13\n\n[slurm-master]"),),
    ),
    BadSite(
        "names that differ in case",
        expected=(
            (
                "inventory.ini:5: node1 and Node1 are one name: host names do not tell capital letters "
                "from small ones [duplicate-host-name]"
            ),
        ),
        edits=(
            ("node2 ansible_host", "Node1 ansible_host"),
            ("node[1:2]", "node1\nNode1"),
        ),
    ),
    BadSite(
        "a name with a domain",
        expected=(
            (
                "inventory.ini:5: 'node2.example.com' cannot be a Slurm node name: a letter, then "
                "letters, digits, '-' or '_' [invalid-host-name]"
            ),
        ),
        edits=(
            ("node2 ansible_host", "node2.example.com ansible_host"),
            ("node[1:2]", "node1\nnode2.example.com"),
        ),
    ),
    BadSite(
        "a name that begins with a digit",
        expected=(
            (
                "inventory.ini:5: '2node' cannot be a Slurm node name: a letter, then letters, digits, "
                "'-' or '_' [invalid-host-name]"
            ),
        ),
        edits=(
            ("node2 ansible_host", "2node ansible_host"),
            ("node[1:2]", "node1\n2node"),
        ),
    ),
    BadSite(
        "a name that Slurm reserves",
        expected=(
            (
                "inventory.ini:5: 'default' cannot be a Slurm node name: a letter, then letters, digits, "
                "'-' or '_' [invalid-host-name]"
            ),
        ),
        edits=(
            ("node2 ansible_host", "default ansible_host"),
            ("node[1:2]", "node1\ndefault"),
        ),
    ),
    BadSite(
        "an address out of range",
        expected=(
            (
                "inventory.ini:5: the address of node2, '10.0.0.312', is neither a host's IP "
                "address nor a host name [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "10.0.0.312"),),
    ),
    BadSite(
        "an address with a prefix",
        expected=(
            (
                "inventory.ini:5: the address of node2, '10.0.0.12/24', is neither a host's IP "
                "address nor a host name [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "10.0.0.12/24"),),
    ),
    BadSite(
        "an address from a template",
        expected=(
            (
                "inventory.ini:5: the address of node2 is a template, but Slurm's configuration needs it "
                "before the run [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "'{{ site_network }}.12'"),),
    ),
    BadSite(
        "an address of the own host",
        expected=(
            (
                "inventory.ini:5: node2 has the address 127.0.0.1, by which no other host of the cluster "
                "reaches it [loopback-address]"
            ),
        ),
        edits=(("10.0.0.12", "127.0.0.1"),),
    ),
    BadSite(
        "an SSH port out of range",
        expected=("inventory.ini:5: ansible_port is 70000, not a port from 1 to 65535 [invalid-value]",),
        edits=(("10.0.0.12", "10.0.0.12 ansible_port=70000"),),
    ),
    BadSite(
        "a misspelled connection variable",
        expected=(
            (
                "inventory.ini:5: Ansible knows no variable 'ansible_hosts' and would ignore it "
                "[unknown-variable]"
            ),
        ),
        edits=(("node2 ansible_host", "node2 ansible_hosts"),),
    ),
    BadSite(
        "a line without a value",
        expected=(
            (
                "inventory.ini:5: Ansible cannot read this: Failed to parse inventory: Expected "
                "key=value host variable assignment, got: gpu [inventory-invalid]"
            ),
        ),
        edits=(("10.0.0.12", "10.0.0.12 gpu"),),
    ),
    BadSite(
        "a child that is no group",
        expected=(
            (
                "inventory.ini:19: Ansible cannot read this: Failed to parse inventory: Section "
                "[slurm-cluster:children] includes undefined group 'slurm-nodes'. [inventory-invalid]"
            ),
        ),
        edits=(("slurm-login\nslurm-node\n", "slurm-login\nslurm-nodes\n"),),
    ),
    BadSite(
        "a section without an end",
        expected=(
            (
                "inventory.ini:7: Ansible cannot read this: a section has no closing bracket "
                "[inventory-invalid]"
            ),
        ),
        edits=(("[slurm-master]", "[slurm-master"),),
    ),
    BadSite(
        "an empty file",
        expected=("inventory.ini: this is not an inventory: it names no host [inventory-invalid]",),
        inventory="",
    ),
    BadSite(
        "prose",
        expected=(
            (
                "inventory.ini:3: Ansible cannot read this: Failed to parse inventory: Expected "
                "key=value host variable assignment, got: text. [inventory-invalid]"
            ),
        ),
        inventory="# A title\n\nSome text. And: more = text.\n",
    ),
    BadSite(
        "YAML with a brace that is not closed",
        expected=(
            (
                "hosts.yml:5: Ansible cannot read this: YAML parsing failed: While parsing a flow "
                "mapping did not find expected ',' or '}'. [inventory-invalid]"
            ),
        ),
        inventory=(
            "all:\n  children:\n    slurm-master: {hosts: {ctl1: {ansible_host: 10.0.0.1}}}\n    "
            "slurm-node: {hosts: {node1: {ansible_host: 10.0.0.2}}\n"
        ),
        inventory_name="hosts.yml",
    ),
    BadSite(
        "YAML with a list of hosts",
        expected=(
            (
                'hosts.yml: Ansible cannot read this: Invalid "hosts" entry for "slurm-node" group, '
                "requires a dictionary, found a list instead. [inventory-invalid]"
            ),
        ),
        inventory=(
            "all:\n  children:\n    slurm-master: {hosts: {ctl1: {ansible_host: 10.0.0.1}}}\n    "
            "slurm-node: {hosts: [node1]}\n"
        ),
        inventory_name="hosts.yml",
    ),
    BadSite(
        "YAML with a key that means nothing",
        expected=(
            (
                "hosts.yml: warning: Ansible says: Skipping unexpected key (host) in group (all), only "
                '"vars", "children" and "hosts" are valid [inventory-doubtful]'
            ),
        ),
        inventory=(
            "all:\n  children:\n    slurm-master: {hosts: {ctl1: {ansible_host: 10.0.0.1}}}\n    "
            "slurm-node: {hosts: {node1: {ansible_host: 10.0.0.2}}}\n  host: {node9: {}}\n"
        ),
        inventory_name="hosts.yml",
    ),
)

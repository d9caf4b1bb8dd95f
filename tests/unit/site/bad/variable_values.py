"""Variables that are unknown, of the wrong type or form, or that nothing reads."""

from tests.unit.site.bad.site import ALL, MASTER, NODES, BadSite, variables

_APART = (("[slurm-login]", "[slurm-database]\nlogin1\n[slurm-login]"),)
_SEVERAL = (
    ("[slurm-master]\nctl1\n", "[slurm-master]\nctl1\nlogin1\n"),
    ("[slurm-login]", "[slurm-database]\nnode1\n[slurm-login]"),
)
SITES = (
    variables(
        "a misspelled name",
        "users_create_hom: true\n",
        "group_vars/all.yml:1: no role knows the variable 'users_create_hom' [unknown-variable]",
    ),
    variables(
        "a name that nothing resembles",
        "frobnication: 1\n",
        "group_vars/all.yml:1: no role knows the variable 'frobnication' [unknown-variable]",
    ),
    variables(
        "a name that is a number",
        "7: 1\n",
        "group_vars/all.yml:1: no role knows the variable '7' [unknown-variable]",
    ),
    variables(
        "text for a number",
        "slurmctld_slurmd_timeout: soon\n",
        (
            "group_vars/all.yml:1: slurmctld_slurmd_timeout is 'soon', not a number from 0 to 65533 "
            "[invalid-value]"
        ),
    ),
    variables(
        "a number that is no choice",
        "slurmctld_return_to_service: 7\n",
        "group_vars/all.yml:1: slurmctld_return_to_service is 7, not one of 0, 1, 2 [invalid-value]",
    ),
    variables(
        "no value",
        "slurmctld_partitions:\n",
        "group_vars/all.yml:1: slurmctld_partitions has no value [invalid-value]",
    ),
    variables(
        "no value for a key",
        "slurmctld_partitions: [{name: batch, default: true, max_time: }]\n",
        "group_vars/all.yml:1: slurmctld_partitions[0].max_time has no value [invalid-value]",
    ),
    BadSite(
        "INI text for true or false",
        expected=("inventory.ini:8: users_create_home is text, not true or false [invalid-value]",),
        edits=(("[slurm-master]\nctl1", "[slurm-master]\nctl1 users_create_home=no"),),
    ),
    variables(
        "a truth value for text",
        "slurmctld_partitions: [{name: batch, default: true, preempt_mode: OFF}]\n",
        ("group_vars/all.yml:1: slurmctld_partitions[0].preempt_mode is false, not text [invalid-value]"),
    ),
    variables(
        "text for a list",
        "slurmctld_partitions: [{name: batch, default: true, groups: slurm-node}]\n",
        "group_vars/all.yml:1: slurmctld_partitions[0].groups is text, not a list [invalid-value]",
    ),
    variables(
        "a mapping for a list",
        "slurmctld_partitions: {name: batch}\n",
        "group_vars/all.yml:1: slurmctld_partitions is a mapping, not a list [invalid-value]",
    ),
    variables(
        "a list for text",
        "slurmctld_cluster_name: [a]\n",
        "group_vars/all.yml:1: slurmctld_cluster_name is a list, not text [invalid-value]",
    ),
    variables(
        "a misspelled key",
        "slurmctld_partitions: [{name: batch, default: true, gropus: [slurm-node]}]\n",
        "group_vars/all.yml:1: slurmctld_partitions[0] has no key 'gropus' [invalid-value]",
    ),
    variables(
        "a key that is missing",
        "slurmctld_partitions: [{default: true}]\n",
        "group_vars/all.yml:1: slurmctld_partitions[0] lacks the key 'name' [invalid-value]",
    ),
    variables(
        "a port out of range",
        "slurmdbd_port: 65536\n",
        "group_vars/all.yml:1: slurmdbd_port is 65536, not a number from 1 to 65535 [invalid-value]",
    ),
    variables(
        "a negative number",
        "slurmd_weight: -1\n",
        (
            "group_vars/slurm-node.yml:1: slurmd_weight is -1, not a number from 0 to 4294967280 "
            "[invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "a time without quotes",
        "slurmctld_partitions: [{name: batch, default: true, max_time: 24:00:00}]\n",
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].max_time is 86400, not a time in quotes, "
            'more than 0: "minutes", "hours:minutes:seconds", "days-hours:minutes:seconds", minutes and '
            "seconds behind others below 60, or UNLIMITED [invalid-value]"
        ),
    ),
    variables(
        "a time in words",
        "slurmctld_partitions: [{name: batch, default: true, max_time: 2 days}]\n",
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].max_time is '2 days', not a time in quotes, "
            'more than 0: "minutes", "hours:minutes:seconds", "days-hours:minutes:seconds", minutes and '
            "seconds behind others below 60, or UNLIMITED [invalid-value]"
        ),
    ),
    variables(
        "a mode without quotes",
        "users_home_mode: 0750\n",
        (
            "group_vars/all.yml:1: users_home_mode is 488, not a file mode in quotes that lets its "
            'owner in, and nobody else write, as in "0700" [invalid-value]'
        ),
    ),
    variables(
        "an age without a unit",
        'slurmdbd_purge: {job: "12"}\n',
        (
            "group_vars/all.yml:1: slurmdbd_purge.job is '12', not an age above 0 with its unit, as in "
            "12months, 30days or 48hours [invalid-value]"
        ),
    ),
    variables(
        "an age with a space, which Slurm does not read",
        'slurmdbd_purge: {job: "30 days"}\n',
        (
            "group_vars/all.yml:1: slurmdbd_purge.job is '30 days', not an age above 0 with its unit, as in "
            "12months, 30days or 48hours [invalid-value]"
        ),
    ),
    variables(
        "a size with a wrong unit",
        "mariadb_innodb_buffer_pool_size: 4GB\n",
        (
            "group_vars/all.yml:1: mariadb_innodb_buffer_pool_size is '4GB', not a size above 0, as in 512M "
            "or 4G, or empty [invalid-value]"
        ),
    ),
    variables(
        "a cluster name with a space",
        "slurmctld_cluster_name: my cluster\n",
        (
            "group_vars/all.yml:1: slurmctld_cluster_name is 'my cluster', not a name of at most 40 "
            "letters, digits, _ . and -, in quotes where it is a number [invalid-value]"
        ),
    ),
    variables(
        "a partition called DEFAULT",
        "slurmctld_partitions: [{name: DEFAULT, default: true}]\n",
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].name is 'DEFAULT', not a partition's "
            "name: letters, digits, _ . and -, in quotes where it is a number, and not DEFAULT "
            "[invalid-value]"
        ),
    ),
    variables(
        "a partition with a space",
        "slurmctld_partitions: [{name: my batch, default: true}]\n",
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].name is 'my batch', not a partition's "
            "name: letters, digits, _ . and -, in quotes where it is a number, and not DEFAULT "
            "[invalid-value]"
        ),
    ),
    variables(
        "a feature with a comma",
        'slurmd_features: ["ib,nvlink"]\n',
        (
            "group_vars/slurm-node.yml:1: slurmd_features[0] is 'ib,nvlink', not a feature: letters, "
            "digits, _ . = / and - [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "a stratum out of range",
        "time_sync_local_stratum: 16\n",
        ("group_vars/all.yml:1: time_sync_local_stratum is 16, not a number from 0 to 15 [invalid-value]"),
    ),
    variables(
        "two time servers in one text",
        "time_sync_servers: [10.0.0.5 10.0.0.6]\n",
        (
            "group_vars/all.yml:1: time_sync_servers[0] is '10.0.0.5 10.0.0.6', not an address or a "
            "host name [invalid-value]"
        ),
    ),
    variables(
        "an inner address that is a name",
        "hosts_file_address: node1-ib\n",
        (
            "host_vars/node1.yml:1: hosts_file_address is 'node1-ib', not a host's IPv4 or IPv6 address "
            "[invalid-value]"
        ),
        file="host_vars/node1.yml",
    ),
    variables(
        "partitions from a template",
        'slurmctld_partitions: "{{ site_partitions }}"\nsite_partitions: [{name: a, default: true}]\n',
        (
            "group_vars/all.yml:1: slurmctld_partitions is a template, but deploy must "
            "know it before Ansible resolves it [invalid-value]"
        ),
    ),
    variables(
        "a template that Jinja cannot read",
        'slurmd_options: "{{ site_a"\n',
        (
            "group_vars/slurm-node.yml:1: slurmd_options cannot be resolved for node[1-2]: Syntax error in "
            "template: unexpected end of template, expected 'end of print statement'. [unresolvable-value]"
        ),
        file=NODES,
    ),
    variables(
        "what deploy computes",
        "slurmdbd_host: db1\n",
        (
            "group_vars/all.yml:1: slurmdbd_host follows from the inventory; what is set here would "
            "contradict it [computed-variable]"
        ),
    ),
    variables(
        "a variable where nothing reads it",
        "slurmctld_partitions: [{name: batch, default: true}]\n",
        (
            "group_vars/slurm-node.yml:1: slurmctld_partitions is read on the hosts of "
            "[slurm-master], and none of them has it: it is set for node1, node2 [unread-variable]"
        ),
        file=NODES,
    ),
    BadSite(
        "what the database's host reads, set where it was when the controller had the database",
        (
            (
                "group_vars/slurm-master.yml:1: slurmdbd_purge is read on the hosts of [slurm-database], and "
                "none of them has it: it is set for ctl1 [unread-variable]"
            ),
            (
                "group_vars/slurm-master.yml:2: slurm_accounts_purge is read on the hosts of "
                "[slurm-database], and none of them has it: it is set for ctl1 [unread-variable]"
            ),
        ),
        edits=_APART,
        files={MASTER: "slurmdbd_purge: {}\nslurm_accounts_purge: true\n"},
    ),
    BadSite(
        "two controllers that would not go on with what the other one has",
        (
            (
                "host_vars/login1.yml:1: slurmctld_slurmd_timeout must be the same on every controller, and "
                "ctl1 has another one than login1 [differing-values]"
            ),
        ),
        edits=_SEVERAL,
        files={
            ALL: "slurmctld_state_save_location: /shared/slurm\n",
            "host_vars/login1.yml": "slurmctld_slurmd_timeout: 900\n",
        },
    ),
    BadSite(
        "two slurmdbd of which one would forget what the other one keeps",
        (
            (
                "host_vars/node1.yml:1: slurmdbd_purge must be the same on every host of slurmdbd, and node2 "
                "has another one than node1 [differing-values]"
            ),
        ),
        edits=(("[slurm-login]", "[slurm-database]\nnode1\nnode2\nctl1\n[slurm-login]"),),
        files={"host_vars/node1.yml": "slurmdbd_purge: {event: 1month}\n"},
    ),
    BadSite(
        "two ids of the slurm user",
        expected=(
            (
                "host_vars/node2.yml:1: users_slurm_uid must be the same on every host, and node1 has "
                "another one than node2 [differing-values]"
            ),
        ),
        files={"host_vars/node2.yml": "users_slurm_uid: 5001\n", ALL: "users_slurm_uid: 5000\n"},
    ),
    variables(
        "an exporter that is no wheel",
        f"gpu_exporter_wheels: [{{url: 'https://example.org/a.tar.gz', sha256: '{'0' * 64}'}}]\n",
        (
            "group_vars/all.yml:1: gpu_exporter_wheels[0].url is 'https://example.org/a.tar.gz', not the "
            "address of a wheel, which ends in .whl: https:// or file:///PATH [invalid-value]"
        ),
    ),
    variables(
        "an environment of whatever is newest",
        "ml_stack_environments: [{name: torch, version: '2', requirements: [torch>=2]}]\n",
        (
            "group_vars/all.yml:1: ml_stack_environments[0].requirements[0] is 'torch>=2', not a package "
            "with its exact version, as in torch==2.9.1 [invalid-value]"
        ),
    ),
    variables(
        "an index with a password",
        (
            "ml_stack_environments: [{name: torch, version: '2', requirements: [torch==2],"
            " index_url: 'https://me:word@index.example/simple'}]\n"
        ),
        (
            "group_vars/all.yml:1: ml_stack_environments[0].index_url is "
            "'https://me:word@index.example/simple', not an address without a password, which belongs into "
            ".netrc of the account that builds [invalid-value]"
        ),
    ),
    variables(
        "an octal number",
        "users_accounts:\n  - name: alice\n    uid: 02001\n",
        "group_vars/all.yml:3: users_accounts has 02001, which YAML reads as 1025 [number-read-otherwise]",
    ),
    variables(
        "a connection that Ansible has not",
        "ansible_connection: sssh\n",
        (
            "group_vars/all.yml:1: ansible_connection is 'sssh', not one of ssh, paramiko, paramiko_ssh, "
            "smart, local [invalid-value]"
        ),
    ),
    variables(
        "a way to root that Ansible has not",
        "ansible_become_method: suddo\n",
        "group_vars/all.yml:1: ansible_become_method is 'suddo', not one of sudo, su [invalid-value]",
    ),
)

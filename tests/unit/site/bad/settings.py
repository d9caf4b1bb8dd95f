"""Slips in settings that have a form of their own, in the text of files, and in lines of the inventory."""

from tests.unit.site.bad.site import ALL, NODES, BadSite, variables

_WATCHED = (("[slurm-master]", "[slurm-metric]\nctl1\n\n[slurm-master]"),)

SITES = (
    BadSite(
        "metrics kept for days in words",
        expected=(
            (
                "group_vars/all.yml:1: prometheus_retention_time is '15 days', not a time "
                "above 0 with its units, as in 15s, 5m or 1h30m [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_retention_time: 15 days\n"},
    ),
    BadSite(
        "metrics kept for no time",
        expected=(
            (
                "group_vars/all.yml:1: prometheus_retention_time is '0', not a time above 0 "
                "with its units, as in 15s, 5m or 1h30m [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_retention_time: '0'\n"},
    ),
    BadSite(
        "an interval without a unit",
        expected=(
            (
                "group_vars/all.yml:1: prometheus_scrape_interval is 15, not a time above 0 "
                "with its units, as in 15s, 5m or 1h30m [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_scrape_interval: 15\n"},
    ),
    BadSite(
        "an interval below nothing",
        expected=(
            (
                "group_vars/all.yml:1: prometheus_scrape_interval is '-5s', not a time above 0 "
                "with its units, as in 15s, 5m or 1h30m [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_scrape_interval: -5s\n"},
    ),
    BadSite(
        "an interval in foreign digits",
        expected=(
            (
                "group_vars/all.yml:1: prometheus_evaluation_interval is '\uff11\uff15s', not a time "
                "above 0 with its units, as in 15s, 5m or 1h30m [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_evaluation_interval: \uff11\uff15s\n"},
    ),
    BadSite(
        "a size of the metrics with a unit that is none",
        expected=(
            (
                "group_vars/all.yml:1: prometheus_retention_size is '10 gigs', not a size with "
                "its unit, as in 500GB, or empty for no limit [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_retention_size: 10 gigs\n"},
    ),
    BadSite(
        "a wait for alerts in words",
        expected=(
            (
                "group_vars/all.yml:1: alertmanager_group_wait is 'soon', not a time with its "
                "units, as in 30s, 5m or 1h30m [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "alertmanager_group_wait: soon\n"},
    ),
    BadSite(
        "an interval of alerts in words",
        expected=(
            (
                "group_vars/all.yml:1: alertmanager_repeat_interval is '4hours', not a time "
                "above 0 with its units, as in 15s, 5m or 1h30m [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "alertmanager_repeat_interval: 4hours\n"},
    ),
    BadSite(
        "a page that is no URL",
        expected=(
            (
                "group_vars/all.yml:1: prometheus_external_url is 'prometheus', not the "
                "address of a page, as in https://metrics.example, or empty [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_external_url: prometheus\n"},
    ),
    BadSite(
        "a page with a broken scheme",
        expected=(
            (
                "group_vars/all.yml:1: alertmanager_external_url is 'ftp//x', not the address "
                "of a page, as in https://metrics.example, or empty [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "alertmanager_external_url: 'ftp//x'\n"},
    ),
    BadSite(
        "an address to listen on that cannot be",
        expected=(
            (
                "group_vars/all.yml:1: prometheus_listen_address is '10.0.999.1', not an IP "
                "address of the host without a port, or empty for all [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_listen_address: 10.0.999.1\n"},
    ),
    BadSite(
        "an address to listen on with its port",
        expected=(
            (
                "group_vars/all.yml:1: prometheus_listen_address is '0.0.0.0:9090', not an IP "
                "address of the host without a port, or empty for all [invalid-value]"
            ),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_listen_address: '0.0.0.0:9090'\n"},
    ),
    variables(
        "an address of the database that cannot be",
        "mariadb_bind_address: 10.0.0.256\n",
        (
            "group_vars/all.yml:1: mariadb_bind_address is '10.0.0.256', not an IP address "
            "of the host without a port, or empty for all [invalid-value]"
        ),
    ),
    BadSite(
        "a port of the metrics beyond all ports",
        expected=(
            ("group_vars/all.yml:1: prometheus_port is 70000, not a number from 1 to 65535 [invalid-value]"),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_port: 70000\n"},
    ),
    BadSite(
        "no port for the metrics",
        expected=(
            ("group_vars/all.yml:1: prometheus_port is 0, not a number from 1 to 65535 [invalid-value]"),
        ),
        edits=_WATCHED,
        files={ALL: "prometheus_port: 0\n"},
    ),
    variables(
        "a port of an exporter beyond all ports",
        "node_exporter_port: 99999\n",
        ("group_vars/all.yml:1: node_exporter_port is 99999, not a number from 1 to 65535 [invalid-value]"),
    ),
    variables(
        "a first group that is none",
        "users_accounts: [{name: alice, uid: 2001, group: 'Big Group'}]\n",
        (
            "group_vars/all.yml:1: users_accounts[0].group is 'Big Group', not a login "
            "name: small letters, digits, - and _, at most 32 [invalid-value]"
        ),
    ),
    variables(
        "an account of a package",
        "users_accounts: [{name: munge, uid: 2001}]\n",
        "group_vars/all.yml:1: munge is not an account of a person [invalid-users]",
    ),
    variables(
        "a group of the distribution",
        "users_groups: [{name: sudo, gid: 2001}]\n",
        "group_vars/all.yml:1: sudo is not an account of a person [invalid-users]",
    ),
    variables(
        "one home for two people",
        (
            "users_accounts: [{name: alice, uid: 2001, home: /home/x}, {name: bob, uid: "
            "2002, home: /home/x}]\n"
        ),
        "group_vars/all.yml:1: alice: its home /home/x is another's, too [invalid-users]",
        "group_vars/all.yml:1: bob: its home /home/x is another's, too [invalid-users]",
    ),
    variables(
        "half a uid",
        "users_accounts: [{name: alice, uid: 2001.5}]\n",
        (
            "group_vars/all.yml:1: users_accounts[0].uid is 2001.5, not a number from 1 to "
            "4294967294 [invalid-value]"
        ),
    ),
    variables(
        "a uid with an exponent",
        "users_accounts: [{name: alice, uid: 2e3}]\n",
        (
            "group_vars/all.yml:1: users_accounts[0].uid is '2e3', not a number from 1 to "
            "4294967294 [invalid-value]"
        ),
    ),
    variables(
        "two lines for one of sshd's settings",
        'ssh_server_parameters: {MaxSessions: "3\\nPermitRootLogin yes"}\n',
        ("group_vars/all.yml:1: ssh_server_parameters.MaxSessions has more than one line [invalid-value]"),
    ),
    variables(
        "a setting of sshd with its value in its name",
        "ssh_server_parameters: {'MaxSessions 3': 4}\n",
        (
            "group_vars/all.yml:1: ssh_server_parameters has the key 'MaxSessions 3', "
            "which is no name of a setting [invalid-value]"
        ),
    ),
    variables(
        "a group with a space in a partition",
        "slurmctld_partitions: [{name: a, default: true, allow_groups: ['big group']}]\n",
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].allow_groups[0] is 'big group', "
            "not one group, without spaces and commas [invalid-value]"
        ),
    ),
    variables(
        "two lines for one parameter of a partition",
        ('slurmctld_partitions: [{name: a, default: true, parameters: {MaxTime: "1\\nNodeName=x"}}]\n'),
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].parameters.MaxTime has more "
            "than one line [invalid-value]"
        ),
    ),
    variables(
        "an interval that Slurm cannot hold",
        "slurmctld_health_check_interval: 99999999999\n",
        (
            "group_vars/all.yml:1: slurmctld_health_check_interval is 99999999999, not a "
            "number from 0 to 65533 [invalid-value]"
        ),
    ),
    variables(
        "two words for MPI",
        "slurmctld_mpi_default: 'pmix v4'\n",
        (
            "group_vars/all.yml:1: slurmctld_mpi_default is 'pmix v4', not one word, as in "
            "pmix [invalid-value]"
        ),
    ),
    variables(
        "two lines for one of Slurm's parameters",
        'slurmctld_parameters: {MaxJobCount: "5\\nSlurmUser=root"}\n',
        ("group_vars/all.yml:1: slurmctld_parameters.MaxJobCount has more than one line [invalid-value]"),
    ),
    variables(
        "a comment in a parameter of Slurm",
        "slurmctld_parameters: {JobSubmitPlugins: 'lua # x'}\n",
        (
            "group_vars/all.yml:1: slurmctld_parameters.JobSubmitPlugins has a #, and what "
            "follows it would be a comment [invalid-value]"
        ),
    ),
    variables(
        "two lines for one setting of cgroups",
        'slurmctld_cgroup_parameters: {AllowedRAMSpace: "5\\nx"}\n',
        (
            "group_vars/all.yml:1: slurmctld_cgroup_parameters.AllowedRAMSpace has more "
            "than one line [invalid-value]"
        ),
    ),
    variables(
        "two lines for one parameter of a node",
        'slurmd_node_parameters: {Procs: "5\\nx"}\n',
        ("group_vars/slurm-node.yml:1: slurmd_node_parameters.Procs has more than one line [invalid-value]"),
        file=NODES,
    ),
    variables(
        "two features in one",
        "slurmd_features: ['a,b']\n",
        (
            "group_vars/slurm-node.yml:1: slurmd_features[0] is 'a,b', not a feature: "
            "letters, digits, _ . = / and - [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "device files without their place",
        (
            "slurmd_hardware: {cpus: 4, memory_mb: 8000, gpus: [{type: a100, count: 2, "
            "files: 'nvidia[0-1]'}]}\n"
        ),
        (
            "group_vars/slurm-node.yml:1: slurmd_hardware.gpus[0].files is 'nvidia[0-1]', "
            "not device files by absolute paths, as in /dev/nvidia[0-3] [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "GPU types that differ in case",
        (
            "slurmd_hardware: {cpus: 4, memory_mb: 8000, gpus: [{type: a100, count: 2}, "
            "{type: A100, count: 2}]}\n"
        ),
        "group_vars/slurm-node.yml:1: GPUs of the type a100 are listed 2 times [duplicate-gpu-type]",
        file=NODES,
    ),
    variables(
        "memory that no number holds",
        "slurmd_hardware: {cpus: 4, memory_mb: 99999999999999999999, gpus: []}\n",
        (
            "group_vars/slurm-node.yml:1: slurmd_hardware.memory_mb is "
            "99999999999999999999, not a number from 1 to 4294967295 [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "resources below nothing",
        "slurm_accounts_qos: [{name: gpu, grp_tres: gres/gpu=-5}]\n",
        (
            "group_vars/all.yml:1: qos gpu: grp_tres: 'gres/gpu=-5' is not an amount: a "
            "number, and perhaps K, M, G, T or P behind it [invalid-accounting]"
        ),
    ),
    variables(
        "resources in foreign digits",
        "slurm_accounts_qos: [{name: gpu, grp_tres: gres/gpu=\uff15}]\n",
        (
            "group_vars/all.yml:1: qos gpu: grp_tres: 'gres/gpu=\uff15' is not an amount: a "
            "number, and perhaps K, M, G, T or P behind it [invalid-accounting]"
        ),
    ),
    variables(
        "one resource twice",
        "slurm_accounts_qos: [{name: gpu, grp_tres: 'cpu=4,cpu=5'}]\n",
        (
            "group_vars/all.yml:1: qos gpu: grp_tres: 'cpu=4,cpu=5' is not a list that "
            "names each resource once [invalid-accounting]"
        ),
    ),
    variables(
        "a flag of a QOS that is none",
        "slurm_accounts_qos: [{name: gpu, flags: [NoSuchFlag]}]\n",
        (
            "group_vars/all.yml:1: slurm_accounts_qos[0].flags[0] is 'NoSuchFlag', not a "
            "flag of a QOS, as sacctmgr(1) lists them [invalid-value]"
        ),
    ),
    variables(
        "a QOS that preempts itself",
        "slurm_accounts_qos: [{name: gpu, preempt: [gpu]}]\n",
        "group_vars/all.yml:1: qos gpu: preempt leads back to it [invalid-accounting]",
    ),
    variables(
        "QOS that preempt each other",
        "slurm_accounts_qos: [{name: a, preempt: [b]}, {name: b, preempt: [a]}]\n",
        "group_vars/all.yml:1: qos a: preempt leads back to it [invalid-accounting]",
        "group_vars/all.yml:1: qos b: preempt leads back to it [invalid-accounting]",
    ),
    variables(
        "shares in words",
        "slurm_accounts_accounts: [{name: a, fairshare: much}]\n",
        (
            "group_vars/all.yml:1: slurm_accounts_accounts[0].fairshare is 'much', not a "
            "number of shares, parent, or -1 to take it back [invalid-value]"
        ),
    ),
    variables(
        "shares below nothing",
        "slurm_accounts_accounts: [{name: a, fairshare: -7}]\n",
        (
            "group_vars/all.yml:1: slurm_accounts_accounts[0].fairshare is -7, not a "
            "number of shares, parent, or -1 to take it back [invalid-value]"
        ),
    ),
    variables(
        "a factor below nothing",
        "slurm_accounts_qos: [{name: gpu, usage_factor: -2}]\n",
        (
            "group_vars/all.yml:1: slurm_accounts_qos[0].usage_factor is -2, not a number "
            "from 0 on, or -1 to take it back [invalid-value]"
        ),
    ),
    variables(
        "a factor that is no number",
        "slurm_accounts_qos: [{name: gpu, usage_factor: .nan}]\n",
        ("group_vars/all.yml:1: slurm_accounts_qos[0].usage_factor is nan, not a number [invalid-value]"),
    ),
    variables(
        "a grace time in words",
        "slurm_accounts_qos: [{name: gpu, grace_time: 5 minutes}]\n",
        (
            "group_vars/all.yml:1: qos gpu: grace_time: '5 minutes' is not a time: "
            "minutes, hours:minutes:seconds or days-hours:minutes:seconds "
            "[invalid-accounting]"
        ),
    ),
    variables(
        "a priority that no number holds",
        "slurm_accounts_qos: [{name: gpu, priority: 99999999999}]\n",
        (
            "group_vars/all.yml:1: slurm_accounts_qos[0].priority is 99999999999, not a "
            "number from -1 to 4294967293 [invalid-value]"
        ),
    ),
    variables(
        "two lines for one setting of the database",
        'mariadb_parameters: {max_connections: "5\\nuser=root"}\n',
        ("group_vars/all.yml:1: mariadb_parameters.max_connections has more than one line [invalid-value]"),
    ),
    variables(
        "a host of a database's account with a space",
        (
            "mariadb_users: [{name: web, host: 'a b', password: "
            "'k3Yk3Yk3Yk3Yk3Yk3Yk3Yk3Y', privileges: 'web.*:ALL'}]\n"
        ),
        ("group_vars/all.yml:1: mariadb_users: the value is wrong (not shown: it is secret) [invalid-value]"),
    ),
    variables(
        "privileges of nothing",
        ("mariadb_users: [{name: web, password: 'k3Yk3Yk3Yk3Yk3Yk3Yk3Yk3Y', privileges: 'everything'}]\n"),
        ("group_vars/all.yml:1: mariadb_users: the value is wrong (not shown: it is secret) [invalid-value]"),
    ),
    variables(
        "two lines for one setting of slurmdbd",
        'slurmdbd_parameters: {MessageTimeout: "5\\nx"}\n',
        ("group_vars/all.yml:1: slurmdbd_parameters.MessageTimeout has more than one line [invalid-value]"),
    ),
    variables(
        "a database's address that cannot be",
        "slurmdbd_database_host: 10.0.0.999\n",
        (
            "group_vars/all.yml:1: slurmdbd_database_host is '10.0.0.999', not an address "
            "or a host name [invalid-value]"
        ),
    ),
    variables(
        "an archive out of itself",
        "slurmdbd_archive_dir: /srv/../etc\n",
        (
            "group_vars/all.yml:1: slurmdbd_archive_dir is '/srv/../etc', not an absolute "
            "path without spaces and .., and not the system's own; or empty "
            "[invalid-value]"
        ),
    ),
    variables(
        "the state of slurmctld on everything",
        "slurmctld_state_save_location: /\n",
        (
            "group_vars/all.yml:1: slurmctld_state_save_location is '/', not an absolute "
            "path without spaces and .., and not the system's own [invalid-value]"
        ),
    ),
    variables(
        "two lines of options for chronyd",
        'time_sync_options: "-4\\nx"\n',
        "group_vars/all.yml:1: time_sync_options is '-4\\nx', not one line [invalid-value]",
    ),
    variables(
        "two lines in a time server",
        'time_sync_servers: ["a\\nallow all"]\n',
        (
            "group_vars/all.yml:1: time_sync_servers[0] is 'a\\nallow all', not an address "
            "or a host name [invalid-value]"
        ),
    ),
    variables(
        "two lines for one kernel setting",
        'enroot_sysctls: {kernel.x: "1\\ny"}\n',
        "group_vars/all.yml:1: enroot_sysctls.kernel.x has more than one line [invalid-value]",
    ),
    variables(
        "two lines for one setting of Enroot",
        'enroot_settings: {ENROOT_X: "1\\ny"}\n',
        "group_vars/all.yml:1: enroot_settings.ENROOT_X has more than one line [invalid-value]",
    ),
    variables(
        "a directory without its place",
        "enroot_temp_directory: tmp\n",
        (
            "group_vars/all.yml:1: enroot_temp_directory is 'tmp', not an absolute path "
            "without spaces, or empty [invalid-value]"
        ),
    ),
    variables(
        "one variable of people twice",
        "user_environment_variables: [{name: A, value: 1}, {name: A, value: 2}]\n",
        (
            "group_vars/all.yml:1: user_environment_variables has A 2 times, and only the "
            "last one would count [declared-twice]"
        ),
    ),
    variables(
        "homes that nobody enters",
        "users_home_mode: '0000'\n",
        (
            "group_vars/all.yml:1: users_home_mode is '0000', not a file mode in quotes "
            'that lets its owner in, and nobody else write, as in "0700" [invalid-value]'
        ),
    ),
    variables(
        "homes that everybody writes to",
        "users_home_mode: '0777'\n",
        (
            "group_vars/all.yml:1: users_home_mode is '0777', not a file mode in quotes "
            'that lets its owner in, and nobody else write, as in "0700" [invalid-value]'
        ),
    ),
    variables(
        "CPUs below nothing",
        "login_limits_cpus: -1\n",
        "group_vars/all.yml:1: login_limits_cpus is -1, not a number from 0 on [invalid-value]",
    ),
    variables(
        "CPUs that are no number",
        "login_limits_cpus: .nan\n",
        "group_vars/all.yml:1: login_limits_cpus is nan, not a number [invalid-value]",
    ),
    variables(
        "a proxy's port beyond all ports",
        "proxy_http: http://proxy.example:99999\n",
        ("group_vars/all.yml:1: proxy_http: the value is wrong (not shown: it is secret) [invalid-value]"),
    ),
    variables(
        "a proxy's password that looks like the end of its address",
        "proxy_http: http://web:2024#Secret@proxy.example:3128\n",
        "group_vars/all.yml:1: proxy_http: the value is wrong (not shown: it is secret) [invalid-value]",
        (
            "group_vars/all.yml:1: warning: proxy_http has a user and a password in it: only apt is told; "
            "users, and the files that deploy fetches on hosts, go out without it [proxy-with-password]"
        ),
    ),
    variables(
        "a proxy without a host",
        "proxy_http: http://:3128\n",
        ("group_vars/all.yml:1: proxy_http: the value is wrong (not shown: it is secret) [invalid-value]"),
    ),
    variables(
        "a word of plugstack.conf that is none",
        "slurmctld_plugstack: ['required /x.so', 'requird /y.so']\n",
        (
            "group_vars/all.yml:1: slurmctld_plugstack[1] is 'requird /y.so', not a line "
            "of plugstack.conf: required, optional or include, and a path (spank(8)) "
            "[invalid-value]"
        ),
    ),
    variables(
        "one environment twice",
        (
            "ml_stack_environments: [{name: a, version: '1', requirements: "
            "[torch==2.9.1]}, {name: a, version: '1', requirements: [torch==2.9.0]}]\n"
        ),
        (
            "group_vars/all.yml:1: ml_stack_environments has a 1 2 times, and only the "
            "last one would count [declared-twice]"
        ),
    ),
    variables(
        "one key twice",
        "motd_help: a\nmotd_help: b\n",
        (
            "group_vars/all.yml:2: Ansible cannot read this: YAML parsing failed: Found "
            "duplicate mapping key 'motd_help'. [inventory-invalid]"
        ),
    ),
    variables(
        "one key twice within a value",
        "slurmctld_parameters: {MaxJobCount: 5, MaxJobCount: 6}\n",
        (
            "group_vars/all.yml:1: Ansible cannot read this: YAML parsing failed: Found "
            "duplicate mapping key 'MaxJobCount'. [inventory-invalid]"
        ),
    ),
    BadSite(
        "one key twice for a host",
        expected=(
            (
                "host_vars/node1.yml:2: Ansible cannot read this: YAML parsing failed: Found "
                "duplicate mapping key 'motd_help'. [inventory-invalid]"
            ),
        ),
        files={"host_vars/node1.yml": "motd_help: a\nmotd_help: b\n"},
    ),
    variables(
        "a tab at the beginning of a line",
        "slurmctld_parameters:\n\tMaxJobCount: 5\n",
        (
            "group_vars/all.yml:2: Ansible cannot read this: YAML parsing failed: Tabs are "
            "usually invalid in YAML. [inventory-invalid]"
        ),
    ),
    variables(
        "variables with a character that is nothing",
        "motd_help: a\x00b\n",
        (
            "group_vars/all.yml: Ansible cannot read this: it is not text in UTF-8, or has "
            "a character that is nothing [inventory-invalid]"
        ),
    ),
    variables(
        "two documents in one file",
        "motd_help: a\n---\nmotd_help: b\n",
        (
            "group_vars/all.yml:2: Ansible cannot read this: YAML parsing failed: Expected "
            "a single document in the stream but found another document. "
            "[inventory-invalid]"
        ),
    ),
    variables(
        "a program for a value",
        "motd_help: !!python/object/apply:os.system [id]\n",
        (
            "group_vars/all.yml:1: Ansible cannot read this: YAML parsing failed: Could "
            "not determine a constructor for the tag "
            "'tag:yaml.org,2002:python/object/apply:os.system'. [inventory-invalid]"
        ),
    ),
    variables(
        "a key with a character that nobody sees",
        "motd\u200b_help: a\n",
        "group_vars/all.yml:1: no role knows the variable 'motd\\u200b_help' [unknown-variable]",
    ),
    variables(
        "no name for a variable",
        "'': a\n",
        "group_vars/all.yml:1: no role knows the variable '' [unknown-variable]",
    ),
    variables(
        "a number for a variable's name",
        "5: a\n",
        "group_vars/all.yml:1: no role knows the variable '5' [unknown-variable]",
    ),
    variables(
        "lists in lists",
        (
            "motd_text: "
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n"
        ),
        "group_vars/all.yml:1: motd_text[0] is a list, not text [invalid-value]",
    ),
    variables(
        "one key twice beside an alias",
        "a: &a {name: x}\nslurmctld_partitions: [{<<: *a, default: true, name: y, name: z}]\n",
        (
            "group_vars/all.yml:2: Ansible cannot read this: YAML parsing failed: Found "
            "duplicate mapping key 'name'. [inventory-invalid]"
        ),
    ),
    variables(
        "a partition that YAML takes for no",
        "slurmctld_partitions: [{name: no, default: true}]\n",
        "group_vars/all.yml:1: slurmctld_partitions[0].name is false, not text [invalid-value]",
    ),
    BadSite(
        "a range with steps of nothing",
        expected=(
            (
                "inventory.ini:14: Ansible cannot read this: Failed to parse inventory: "
                "range() arg 3 must not be zero [inventory-invalid]"
            ),
        ),
        edits=(("node[1:2]\n", "node[1:2:0]\n"),),
    ),
    BadSite(
        "a range that goes backwards",
        expected=(
            (
                "inventory.ini: the group slurm-node is missing or empty: no host would run "
                "jobs [no-slurm-node]"
            ),
            "inventory.ini:14: node[1:2:-1] means no host: its steps go backwards [range-of-nobody]",
            ("inventory.ini:4: node1 is in no group, so nothing would be done with it [host-in-no-group]"),
            ("inventory.ini:5: node2 is in no group, so nothing would be done with it [host-in-no-group]"),
        ),
        edits=(("node[1:2]\n", "node[1:2:-1]\n"),),
    ),
    BadSite(
        "a range without an end",
        expected=(
            (
                "inventory.ini:14: Ansible cannot read this: Failed to parse inventory: host "
                "range must specify end value [inventory-invalid]"
            ),
        ),
        edits=(("node[1:2]\n", "node[1:]\n"),),
    ),
    BadSite(
        "a range of all numbers",
        expected=("inventory.ini:14: node[1:99999999] means 99,999,999 hosts [range-too-long]",),
        edits=(("node[1:2]\n", "node[1:99999999]\n"),),
    ),
    BadSite(
        "a range with zeros at one end",
        expected=(
            (
                "inventory.ini:14: Ansible cannot read this: Failed to parse inventory: host "
                "range must specify equal-length begin and end formats [inventory-invalid]"
            ),
        ),
        edits=(("node[1:2]\n", "node[01:2]\n"),),
    ),
    BadSite(
        "brackets in brackets",
        expected=(
            (
                "inventory.ini:14: Ansible cannot read this: Failed to parse inventory: "
                "invalid literal for int() with base 10: '[1' [inventory-invalid]"
            ),
        ),
        edits=(("node[1:2]\n", "node[[1:2]\n"),),
    ),
    BadSite(
        "one variable twice in a line",
        expected=(
            (
                "inventory.ini:4: ansible_host is set twice in this line, and only the last "
                "one would count [variable-twice]"
            ),
        ),
        edits=(("node1 ansible_host=10.0.0.11", "node1 ansible_host=10.0.0.11 ansible_host=10.0.0.13"),),
    ),
    BadSite(
        "a quote that is not closed",
        expected=(
            (
                "inventory.ini:4: Ansible cannot read this: Failed to parse inventory: Error "
                "parsing host definition 'node1 ansible_host='10.0.0.11': No closing quotation "
                "[inventory-invalid]"
            ),
        ),
        edits=(("node1 ansible_host=10.0.0.11", "node1 ansible_host='10.0.0.11"),),
    ),
    BadSite(
        "a variable that is not there, in a line of the inventory",
        expected=(
            (
                "inventory.ini:4: slurmd_weight is a template, but deploy must know it before "
                "Ansible resolves it [invalid-value]"
            ),
            (
                "inventory.ini:4: slurmd_weight cannot be resolved for node1: 'no_such' is "
                "undefined [undefined-variable]"
            ),
        ),
        edits=(
            ("node1 ansible_host=10.0.0.11", "node1 ansible_host=10.0.0.11 slurmd_weight='{{ no_such }}'"),
        ),
    ),
    BadSite(
        "a variable that is itself, in a line of the inventory",
        expected=(
            (
                "inventory.ini:4: slurmd_options cannot be resolved for node1: it refers to "
                "itself [unresolvable-value]"
            ),
        ),
        edits=(
            (
                "node1 ansible_host=10.0.0.11",
                "node1 ansible_host=10.0.0.11 slurmd_options='{{ slurmd_options }}'",
            ),
        ),
    ),
    BadSite(
        "an account to log in with that is not there",
        expected=("inventory.ini:4: ansible_user cannot be resolved for node1 [undefined-variable]",),
        edits=(
            ("node1 ansible_host=10.0.0.11", "node1 ansible_host=10.0.0.11 ansible_user='{{ no_such }}'"),
        ),
    ),
    BadSite(
        "a port to log in at that is not there",
        expected=("inventory.ini:4: ansible_port cannot be resolved for node1 [undefined-variable]",),
        edits=(
            ("node1 ansible_host=10.0.0.11", "node1 ansible_host=10.0.0.11 ansible_port='{{ no_such }}'"),
        ),
    ),
    BadSite(
        "a variable that is itself, in a section of the inventory",
        expected=(
            (
                "inventory.ini:17: slurmd_options cannot be resolved for node[1-2]: it refers "
                "to itself [unresolvable-value]"
            ),
        ),
        edits=(
            (
                "[slurm-cluster:children]",
                "[slurm-node:vars]\nslurmd_options={{ slurmd_options }}\n\n[slurm-cluster:children]",
            ),
        ),
    ),
    BadSite(
        "a variable that is not there, of one host",
        expected=(
            (
                "host_vars/node1.yml:1: slurmd_options cannot be resolved for node1: 'nope' is "
                "undefined [undefined-variable]"
            ),
        ),
        files={"host_vars/node1.yml": "slurmd_options: '{{ nope }}'\n"},
    ),
    BadSite(
        "a circle by way of one host's variables",
        expected=(
            (
                "group_vars/all.yml:1: slurmd_options cannot be resolved for node1: 'site_b' "
                "is undefined [undefined-variable]"
            ),
            (
                "group_vars/all.yml:1: slurmd_options cannot be resolved for node2: it refers "
                "to itself [unresolvable-value]"
            ),
        ),
        files={
            ALL: "site_a: '{{ site_b }}'\nslurmd_options: '{{ site_a }}'\n",
            "host_vars/node2.yml": "site_b: '{{ site_a }}'\n",
        },
    ),
    BadSite(
        "groups in a circle",
        expected=(
            (
                "inventory.ini:19: Ansible cannot read this: Failed to parse inventory: Adding "
                "group 'slurm-node' as child to 'slurm-cluster' creates a recursive dependency "
                "loop. [inventory-invalid]"
            ),
        ),
        edits=(
            ("[slurm-cluster:children]", "[slurm-node:children]\nslurm-cluster\n\n[slurm-cluster:children]"),
        ),
    ),
    BadSite(
        "no address",
        expected=(
            (
                "inventory.ini:4: the address of node1, '', is neither a host's IP address nor "
                "a host name [invalid-address]"
            ),
        ),
        edits=(("node1 ansible_host=10.0.0.11", "node1 ansible_host="),),
    ),
    BadSite(
        "a URL for an address",
        expected=(
            (
                "inventory.ini:4: the address of node1, 'ssh://10.0.0.11', is neither a host's "
                "IP address nor a host name [invalid-address]"
            ),
        ),
        edits=(("node1 ansible_host=10.0.0.11", "node1 ansible_host=ssh://10.0.0.11"),),
    ),
    BadSite(
        "an account in an address",
        expected=(
            (
                "inventory.ini:4: the address of node1, 'root@10.0.0.11', is neither a host's "
                "IP address nor a host name [invalid-address]"
            ),
        ),
        edits=(("node1 ansible_host=10.0.0.11", "node1 ansible_host=root@10.0.0.11"),),
    ),
    BadSite(
        "an option for an address",
        expected=(
            (
                "inventory.ini:4: the address of node1, '-oProxyCommand=id', is neither a "
                "host's IP address nor a host name [invalid-address]"
            ),
        ),
        edits=(("node1 ansible_host=10.0.0.11", "node1 ansible_host=-oProxyCommand=id"),),
    ),
    BadSite(
        "an option for an account to log in with",
        expected=("inventory.ini:4: ansible_user is '-oProxyCommand=id', not a login name [invalid-value]",),
        edits=(
            ("node1 ansible_host=10.0.0.11", "node1 ansible_host=10.0.0.11 ansible_user=-oProxyCommand=id"),
        ),
    ),
    BadSite(
        "an option for an account to log in with, by a template",
        expected=(
            "inventory.ini:4: ansible_user is \"{{ '-o' ~ 'X=y' }}\", not a login name [invalid-value]",
        ),
        edits=(
            (
                "node1 ansible_host=10.0.0.11",
                "node1 ansible_host=10.0.0.11 ansible_user=\"{{ '-o' ~ 'X=y' }}\"",
            ),
        ),
    ),
    BadSite(
        "options of ssh with a quote that is not closed",
        expected=("inventory.ini:4: ansible_ssh_common_args has a quote that is not closed [invalid-value]",),
        edits=(
            (
                "node1 ansible_host=10.0.0.11",
                "node1 ansible_host=10.0.0.11 ansible_ssh_common_args='-o ProxyCommand=\"ssh -W x'",
            ),
        ),
    ),
    BadSite(
        "a word for a port",
        expected=("inventory.ini:4: ansible_port is 'ssh', not a port from 1 to 65535 [invalid-value]",),
        edits=(("node1 ansible_host=10.0.0.11", "node1 ansible_host=10.0.0.11 ansible_port=ssh"),),
    ),
    BadSite(
        "a name that begins with a hyphen",
        expected=(
            (
                "inventory.ini:4: '-node1' cannot be a Slurm node name: a letter, then "
                "letters, digits, '-' or '_' [invalid-host-name]"
            ),
        ),
        edits=(
            ("node1 ansible_host=10.0.0.11", "-node1 ansible_host=10.0.0.11"),
            ("node[1:2]", "-node1\nnode2"),
        ),
    ),
    BadSite(
        "a name with a foreign letter",
        expected=(
            (
                "inventory.ini:4: 'n\xf6de1' cannot be a Slurm node name: a letter, then letters, "
                "digits, '-' or '_' [invalid-host-name]"
            ),
        ),
        edits=(
            ("node1 ansible_host=10.0.0.11", "n\xf6de1 ansible_host=10.0.0.11"),
            ("node[1:2]", "n\xf6de1\nnode2"),
        ),
    ),
    variables(
        "a health check that runs nothing",
        "node_health_programs: [{name: licences, command: []}]\n",
        "group_vars/slurm-node.yml:1: node_health_programs: the command of licences is empty [invalid-value]",
        file=NODES,
    ),
    variables(
        "a health check wherever it is started",
        "node_health_programs: [{name: licences, command: [bin/answer]}]\n",
        (
            "group_vars/slurm-node.yml:1: node_health_programs: the command of licences starts "
            "with 'bin/answer', "
            "not with an absolute path [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "a repair wherever it is started",
        "node_health_programs: [{name: licences, command: [/bin/true], repair: [bin/renew]}]\n",
        (
            "group_vars/slurm-node.yml:1: node_health_programs: the repair of licences starts "
            "with 'bin/renew', "
            "not with an absolute path [invalid-value]"
        ),
        file=NODES,
    ),
)

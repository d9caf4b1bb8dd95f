"""Slips of the hand: what looks right and is none, in keys, times, sizes, ranges, addresses and files."""

from tests.unit.site.bad.site import ALL, NODES, BadSite, variables

_REPEATED = "".join(
    f"site_a{level}: &a{level} [{', '.join([f'*a{level - 1}' if level else 'x'] * 9)}]\n"
    for level in range(12)
)
"""What has 9 values in its first line and 9 to the power of 12 in its last."""

_EXCESS = "this cannot be read: its aliases (*NAME) come to more than 100,000 values"
_LOGIN_NAME = "not a login name: small letters, digits, - and _, at most 32 [invalid-value]"
_ACCOUNTING_NAME = (
    "not a name as Slurm keeps it: small letters, digits and _ . @ + -, in quotes where it is a number "
    "[invalid-value]"
)

SITES = (
    variables(
        "aliases of aliases of aliases",
        _REPEATED,
        f"group_vars/all.yml:6: {_EXCESS} [too-many-aliases]",
    ),
    BadSite(
        "aliases of aliases in a host's directory and in secrets.yml",
        expected=(
            f"host_vars/node1/gpus.yaml:6: {_EXCESS} [too-many-aliases]",
            f"secrets.yml:6: {_EXCESS} [too-many-aliases]",
        ),
        files={"host_vars/node1/gpus.yaml": _REPEATED, "secrets.yml": _REPEATED},
    ),
    BadSite(
        "aliases of aliases in the hardware contract",
        expected=(
            (
                "hardware.yml:6: this file cannot be read: its aliases (*NAME) come to more than 100,000 "
                "values [hardware-invalid]"
            ),
        ),
        files={"hardware.yml": _REPEATED},
    ),
    variables(
        "users that differ in case",
        "users_accounts: [{name: alice, uid: 2001}, {name: Alice, uid: 2002}]\n",
        f"group_vars/all.yml:1: users_accounts[1].name is 'Alice', {_LOGIN_NAME}",
    ),
    variables(
        "groups of users that differ in case",
        "users_groups: [{name: physics, gid: 2001}, {name: Physics, gid: 2002}]\n",
        f"group_vars/all.yml:1: users_groups[1].name is 'Physics', {_LOGIN_NAME}",
    ),
    variables(
        "accounts that differ in case",
        "slurm_accounts_accounts: [{name: physics}, {name: PHYSICS}]\n",
        f"group_vars/all.yml:1: slurm_accounts_accounts[1].name is 'PHYSICS', {_ACCOUNTING_NAME}",
    ),
    variables(
        "QOS that differ in case",
        "slurm_accounts_qos: [{name: long}, {name: Long}]\n",
        f"group_vars/all.yml:1: slurm_accounts_qos[1].name is 'Long', {_ACCOUNTING_NAME}",
    ),
    variables(
        "users of Slurm that differ in case",
        "slurm_accounts_accounts: [{name: a}]\n"
        "slurm_accounts_users: [{name: alice, accounts: [a]}, {name: aliCe, accounts: [a]}]\n",
        f"group_vars/all.yml:2: slurm_accounts_users[1].name is 'aliCe', {_ACCOUNTING_NAME}",
    ),
    BadSite(
        "groups of hosts that differ in case",
        expected=(
            (
                "inventory.ini: warning: the groups [Rack1] and [rack1] differ in capital letters only, and "
                "each has its own variables [groups-alike]"
            ),
        ),
        edits=(("[slurm-master]", "[rack1]\nnode1\n\n[Rack1]\nnode2\n\n[slurm-master]"),),
    ),
    variables(
        "a public key that is none",
        "users_accounts: [{name: alice, uid: 2001, ssh_keys: [hello]}]\n",
        (
            "group_vars/all.yml:1: users_accounts[0].ssh_keys[0] is not a public key on one line, as "
            "in a file that ends with .pub: ssh-ed25519 AAAA… name [invalid-value]"
        ),
    ),
    variables(
        "a public key cut short",
        (
            "users_accounts: [{name: alice, uid: 2001, ssh_keys: [ssh-ed25519 "
            "AAAAC3NzaC1lZDI1NTE5AAAAIByAsjuAk0X92j9y0kvRudHF4WuOMIb6he]}]\n"
        ),
        (
            "group_vars/all.yml:1: users_accounts[0].ssh_keys[0] is not a public key on one line, as "
            "in a file that ends with .pub: ssh-ed25519 AAAA… name [invalid-value]"
        ),
    ),
    variables(
        "a public key of another type than it says",
        (
            "users_accounts: [{name: alice, uid: 2001, ssh_keys: [ssh-rsa "
            "AAAAC3NzaC1lZDI1NTE5AAAAIByAsjuAk0X92j9y0kvRudHF4WuOMIb6her1haG51qoH]}]\n"
        ),
        (
            "group_vars/all.yml:1: users_accounts[0].ssh_keys[0] is not a public key on one line, as "
            "in a file that ends with .pub: ssh-ed25519 AAAA… name [invalid-value]"
        ),
    ),
    variables(
        "a public key with a foreign digit",
        (
            "users_accounts: [{name: alice, uid: 2001, ssh_keys: [ssh-ed2551\uff19 "
            "AAAAC3NzaC1lZDI1NTE5AAAAIByAsjuAk0X\uff192j\uff19y0kvRudHF4WuOMIb6her1haG51qoH]}]\n"
        ),
        (
            "group_vars/all.yml:1: users_accounts[0].ssh_keys[0] is not a public key on one line, as "
            "in a file that ends with .pub: ssh-ed25519 AAAA… name [invalid-value]"
        ),
    ),
    variables(
        "the name of a file for a public key",
        "users_accounts: [{name: alice, uid: 2001, ssh_keys: [~/.ssh/id_ed25519.pub]}]\n",
        (
            "group_vars/all.yml:1: users_accounts[0].ssh_keys[0] is not a public key on one line, as "
            "in a file that ends with .pub: ssh-ed25519 AAAA… name [invalid-value]"
        ),
    ),
    variables(
        "a private key for a public one",
        (
            "users_accounts:\n  - name: alice\n    uid: 2001\n    ssh_keys:\n      - |\n        -----BEGIN "
            "OPENSSH PRIVATE KEY-----\n        k3Y\n        -----END OPENSSH PRIVATE KEY-----\n"
        ),
        (
            "group_vars/all.yml:1: users_accounts[0].ssh_keys[0] is not a public key on one line, as "
            "in a file that ends with .pub: ssh-ed25519 AAAA… name [invalid-value]"
        ),
    ),
    variables(
        "a time of nothing",
        'slurmctld_partitions: [{name: a, default: true, max_time: "0:00"}]\n',
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].max_time is '0:00', not a time in quotes, "
            'more than 0: "minutes", "hours:minutes:seconds", "days-hours:minutes:seconds", minutes '
            "and seconds behind others below 60, or UNLIMITED [invalid-value]"
        ),
    ),
    variables(
        "a time with 99 seconds",
        'slurmctld_partitions: [{name: a, default: true, max_time: "1:59:99"}]\n',
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].max_time is '1:59:99', not a time in "
            'quotes, more than 0: "minutes", "hours:minutes:seconds", "days-hours:minutes:seconds", '
            "minutes and seconds behind others below 60, or UNLIMITED [invalid-value]"
        ),
    ),
    variables(
        "a time in foreign digits",
        'slurmctld_partitions: [{name: a, default: true, max_time: "\uff11\uff12"}]\n',
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].max_time is '\uff11\uff12', not a time in quotes, "
            'more than 0: "minutes", "hours:minutes:seconds", "days-hours:minutes:seconds", minutes '
            "and seconds behind others below 60, or UNLIMITED [invalid-value]"
        ),
    ),
    variables(
        "a time of ten thousand years",
        'slurmctld_partitions: [{name: a, default: true, max_time: "3650000-0"}]\n',
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].max_time is '3650000-0', not a time in "
            'quotes, more than 0: "minutes", "hours:minutes:seconds", "days-hours:minutes:seconds", '
            "minutes and seconds behind others below 60, or UNLIMITED [invalid-value]"
        ),
    ),
    variables(
        "an age of nothing",
        "slurmdbd_purge: {job: 0days}\n",
        (
            "group_vars/all.yml:1: slurmdbd_purge.job is '0days', not an age above 0 with its unit, "
            "as in 12months, 30days or 48hours [invalid-value]"
        ),
    ),
    variables(
        "a size of nothing",
        "mariadb_max_allowed_packet: 0G\n",
        (
            "group_vars/all.yml:1: mariadb_max_allowed_packet is '0G', not a size above 0, as in 512M "
            "or 4G [invalid-value]"
        ),
    ),
    variables(
        "a size in foreign digits",
        "mariadb_max_allowed_packet: '\uff11\uff16M'\n",
        (
            "group_vars/all.yml:1: mariadb_max_allowed_packet is '\uff11\uff16M', not a size above 0, as in "
            "512M or 4G [invalid-value]"
        ),
    ),
    variables(
        "a size that no number holds",
        "mariadb_innodb_buffer_pool_size: 99999999T\n",
        (
            "group_vars/all.yml:1: mariadb_innodb_buffer_pool_size is '99999999T', not a size above "
            "0, as in 512M or 4G, or empty [invalid-value]"
        ),
    ),
    variables(
        "more than all memory",
        "login_limits_memory: 400%\n",
        (
            "group_vars/all.yml:1: login_limits_memory is '400%', not a part up to 100% or a size, as "
            "in 25%, 16G or infinity [invalid-value]"
        ),
    ),
    variables(
        "no memory at all",
        "login_limits_memory: 0%\n",
        (
            "group_vars/all.yml:1: login_limits_memory is '0%', not a part up to 100% or a size, as "
            "in 25%, 16G or infinity [invalid-value]"
        ),
    ),
    variables(
        "ports from high to low",
        'firewall_admin_networks: [10.0.0.0/8]\nfirewall_open: [{ports: ["90-80"]}]\n',
        (
            "group_vars/all.yml:2: firewall_open[0].ports[0] is '90-80', not a port or a range of "
            "ports, as in 8000-8099 [invalid-value]"
        ),
    ),
    variables(
        "a port that no host has",
        'firewall_admin_networks: [10.0.0.0/8]\nfirewall_open: [{ports: ["99999"]}]\n',
        (
            "group_vars/all.yml:2: firewall_open[0].ports[0] is '99999', not a port or a range of "
            "ports, as in 8000-8099 [invalid-value]"
        ),
    ),
    variables(
        "port 0",
        'firewall_admin_networks: [10.0.0.0/8]\nfirewall_open: [{ports: ["0"]}]\n',
        (
            "group_vars/all.yml:2: firewall_open[0].ports[0] is '0', not a port or a range of ports, "
            "as in 8000-8099 [invalid-value]"
        ),
    ),
    variables(
        "a network with too many bits",
        "firewall_admin_networks: [10.0.0.0/33]\n",
        (
            "group_vars/all.yml:1: firewall_admin_networks[0] is '10.0.0.0/33', not an address or a "
            "network, as in 10.0.0.0/16 [invalid-value]"
        ),
    ),
    variables(
        "a network that cannot be",
        "firewall_admin_networks: [10.0.999.0/24]\n",
        (
            "group_vars/all.yml:1: firewall_admin_networks[0] is '10.0.999.0/24', not an address or a "
            "network, as in 10.0.0.0/16 [invalid-value]"
        ),
    ),
    variables(
        "dots for a network",
        "firewall_admin_networks: ['....']\n",
        (
            "group_vars/all.yml:1: firewall_admin_networks[0] is '....', not an address or a network, "
            "as in 10.0.0.0/16 [invalid-value]"
        ),
    ),
    variables(
        "a time server that cannot be",
        "time_sync_servers: [10.0.0.999]\n",
        (
            "group_vars/all.yml:1: time_sync_servers[0] is '10.0.0.999', not an address or a host "
            "name [invalid-value]"
        ),
    ),
    variables(
        "an option for a time server",
        "time_sync_servers: ['-iburst']\n",
        (
            "group_vars/all.yml:1: time_sync_servers[0] is '-iburst', not an address or a host name "
            "[invalid-value]"
        ),
    ),
    variables(
        "a number with an underscore",
        "slurmctld_slurmd_timeout: '3_0'\n",
        (
            "group_vars/all.yml:1: slurmctld_slurmd_timeout is '3_0', not a number from 0 to 65533 "
            "[invalid-value]"
        ),
    ),
    variables(
        "a number with spaces",
        "slurmctld_slurmd_timeout: ' 30 '\n",
        (
            "group_vars/all.yml:1: slurmctld_slurmd_timeout is ' 30 ', not a number from 0 to 65533 "
            "[invalid-value]"
        ),
    ),
    variables(
        "a uid in foreign digits",
        "users_accounts: [{name: alice, uid: '\uff12\uff10\uff10\uff11'}]\n",
        (
            "group_vars/all.yml:1: users_accounts[0].uid is '\uff12\uff10\uff10\uff11', not a number from 1 "
            "to 4294967294 [invalid-value]"
        ),
    ),
    variables(
        "a uid that no kernel has",
        "users_accounts: [{name: alice, uid: 99999999999}]\n",
        (
            "group_vars/all.yml:1: users_accounts[0].uid is 99999999999, not a number from 1 to "
            "4294967294 [invalid-value]"
        ),
    ),
    variables(
        "scratch on everything",
        "scratch_directory: /\n",
        (
            "group_vars/slurm-node.yml:1: scratch_directory is '/', not an absolute path without "
            "spaces and .., and not the system's own [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "a path out of itself",
        "users_directories: [/data/../etc]\n",
        (
            "group_vars/all.yml:1: users_directories[0] is '/data/../etc', not an absolute path "
            "without spaces and .., and not the system's own [invalid-value]"
        ),
    ),
    variables(
        "the system for a home",
        "users_accounts: [{name: alice, uid: 2001, home: /root}]\n",
        (
            "group_vars/all.yml:1: users_accounts[0].home is '/root', not an absolute path without "
            "spaces and .., and not the system's own [invalid-value]"
        ),
    ),
    variables(
        "a mount over the system",
        "nfs_client_mounts: [{server: nas, export: /x, path: /etc/}]\n",
        (
            "group_vars/all.yml:1: nfs_client_mounts[0].path is '/etc/', not an absolute path without "
            "spaces and .., and not the system's own [invalid-value]"
        ),
    ),
    variables(
        "one place with and without a slash at its end",
        (
            "nfs_client_mounts: [{server: nas, export: /x, path: /data}, {server: nas, export: /y, "
            "path: /data/}]\n"
        ),
        (
            "group_vars/all.yml:1: /data would be mounted twice on ctl1, and only the last one could "
            "be seen [mounted-twice]"
        ),
    ),
    variables(
        "a certificate that is none",
        "log_client_ca: hello\n",
        (
            "group_vars/all.yml:1: log_client_ca is not the text of a certificate, from -----BEGIN "
            "CERTIFICATE----- to its END, or empty [invalid-value]"
        ),
    ),
    variables(
        "a number for the cluster's name",
        "slurmctld_cluster_name: 010\n",
        (
            "group_vars/all.yml:1: slurmctld_cluster_name is 8, not a name of at most 40 letters, "
            "digits, _ . and -, in quotes where it is a number [invalid-value]"
        ),
    ),
    variables(
        "a number for a partition's name",
        "slurmctld_partitions: [{name: 010, default: true}]\n",
        (
            "group_vars/all.yml:1: slurmctld_partitions[0].name is 8, not a partition's name: "
            "letters, digits, _ . and -, in quotes where it is a number, and not DEFAULT "
            "[invalid-value]"
        ),
    ),
    variables(
        "a value with a character that nobody sees",
        'motd_text: ["\\u200bhello"]\n',
        "group_vars/all.yml:1: motd_text[0] has the invisible character '\\u200b' [invalid-value]",
    ),
    variables(
        "a value with nothing in it",
        'user_environment_variables: [{name: A, value: "a\\0b"}]\n',
        (
            "group_vars/all.yml:1: user_environment_variables[0].value has the invisible character "
            "'\\x00' [invalid-value]"
        ),
    ),
    variables(
        "a name with a space that is none",
        "users_create_home\xa0: false\n",
        "group_vars/all.yml:1: no role knows the variable 'users_create_home\\xa0' [unknown-variable]",
    ),
    variables(
        "partitions that differ in capital letters",
        "slurmctld_partitions: [{name: a, default: true}, {name: A}]\n",
        (
            "group_vars/all.yml:1: warning: partitions a and A differ in capital letters only "
            "[partitions-alike]"
        ),
    ),
    variables(
        "an inner address that cannot be",
        "hosts_file_address: 10.0.999.1\n",
        (
            "host_vars/node1.yml:1: hosts_file_address is '10.0.999.1', not a host's IPv4 or IPv6 "
            "address [invalid-value]"
        ),
        file="host_vars/node1.yml",
    ),
    variables(
        "an inner address of many",
        "hosts_file_address: 239.1.1.1\n",
        (
            "host_vars/node1.yml:1: hosts_file_address is '239.1.1.1', not a host's IPv4 or IPv6 "
            "address [invalid-value]"
        ),
        file="host_vars/node1.yml",
    ),
    variables(
        "no GPU of a type",
        "slurmd_hardware: {cpus: 4, memory_mb: 8000, gpus: [{type: a100, count: 0}]}\n",
        (
            "group_vars/slurm-node.yml:1: slurmd_hardware.gpus[0].count is 0, not a number from 1 on "
            "[invalid-value]"
        ),
        file=NODES,
    ),
    BadSite(
        "a range of hosts that ends before it begins",
        expected=("inventory.ini:14: n[9:1] means no host: 9 comes after 1 [range-of-nobody]",),
        edits=(("[slurm-node]\n", "[slurm-node]\nn[9:1]\n"),),
    ),
    BadSite(
        "a range of letters that ends before it begins",
        expected=(
            (
                "inventory.ini:14: Ansible cannot read this: Failed to parse inventory: host range must "
                "have begin <= end [inventory-invalid]"
            ),
        ),
        edits=(("[slurm-node]\n", "[slurm-node]\nn[c:a]\n"),),
    ),
    BadSite(
        "a range as Slurm writes it",
        expected=(
            (
                "inventory.ini:14: Ansible cannot read this: Failed to parse inventory: host range must "
                "be begin:end or begin:end:step [inventory-invalid]"
            ),
        ),
        edits=(("node[1:2]", "node[1-2]"),),
    ),
    BadSite(
        "an address in hexadecimal digits",
        expected=(
            (
                "inventory.ini:5: the address of node2, '0x0a.0.0.12', is neither a host's IP address nor "
                "a host name [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "0x0a.0.0.12"),),
    ),
    BadSite(
        "an address with a byte too many",
        expected=(
            (
                "inventory.ini:5: the address of node2, '10.0.0.12.5', is neither a host's IP address nor "
                "a host name [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "10.0.0.12.5"),),
    ),
    BadSite(
        "an address for many",
        expected=(
            (
                "inventory.ini:5: the address of node2, '224.0.0.1', is neither a host's IP address nor a "
                "host name [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "224.0.0.1"),),
    ),
    BadSite(
        "an address for all",
        expected=(
            (
                "inventory.ini:5: the address of node2, '255.255.255.255', is neither a host's IP address "
                "nor a host name [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "255.255.255.255"),),
    ),
    BadSite(
        "an address for any",
        expected=(
            (
                "inventory.ini:5: the address of node2, '0.0.0.0', is neither a host's IP address nor a "
                "host name [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "0.0.0.0"),),  # noqa: S104
    ),
    BadSite(
        "an address of one cable only",
        expected=(
            (
                "inventory.ini:5: the address of node2, 'fe80::1', is neither a host's IP address nor a "
                "host name [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "fe80::1"),),
    ),
    BadSite(
        "an address in foreign digits",
        expected=(
            (
                "inventory.ini:5: the address of node2, '10.0.0.\uff11\uff12', is neither a host's "
                "IP address nor a host name [invalid-address]"
            ),
        ),
        edits=(("10.0.0.12", "10.0.0.\uff11\uff12"),),
    ),
    BadSite(
        "a space that is none in the inventory",
        expected=(
            (
                "inventory.ini:2: 'ctl1\\xa0ansible_host=10.0.0.1' is in no group, so nothing would be "
                "done with it [host-in-no-group]"
            ),
        ),
        edits=(("ctl1 ansible_host=10.0.0.1\n", "ctl1\xa0ansible_host=10.0.0.1\n"),),
    ),
    BadSite(
        "an inventory with a byte order mark",
        expected=(
            (
                "inventory.ini: Ansible cannot read this: it begins with a byte order mark, which is no "
                "part of a text [inventory-invalid]"
            ),
        ),
        binary={"inventory.ini": b"\xef\xbb\xbf[slurm-master]\nctl1\n"},
    ),
    BadSite(
        "an inventory in UTF-16",
        expected=(
            (
                "inventory.ini: Ansible cannot read this: it is not text in UTF-8, or has a character "
                "that is nothing [inventory-invalid]"
            ),
        ),
        binary={"inventory.ini": "[slurm-master]\nctl1\n".encode("utf-16-le")},
    ),
    BadSite(
        "variables in UTF-16",
        expected=(
            (
                "group_vars/all.yml: Ansible cannot read this: it is not text in UTF-8 but in UTF-16 "
                "[inventory-invalid]"
            ),
        ),
        binary={ALL: "\ufeffusers_create_home: false\n".encode("utf-16-le")},
    ),
)

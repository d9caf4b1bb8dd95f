"""Secrets that are none, or that others can read."""

from tests.unit.site.bad.site import ALL, MASTER, NODES, BadSite, variables

SITES = (
    variables(
        "a placeholder",
        "munge_key: ReplaceWithASecureKeyBeforeTheFirstRun\n",
        (
            "group_vars/all.yml:1: munge_key is a placeholder or shorter than 16 characters "
            "[placeholder-secret]"
        ),
    ),
    variables(
        "a placeholder in secrets.yml",
        "slurmdbd_database_password: changeme\n",
        (
            "secrets.yml: slurmdbd_database_password is a placeholder or shorter than 16 characters "
            "[placeholder-secret]"
        ),
        file="secrets.yml",
    ),
    variables(
        "a short munge key",
        "munge_key: k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y\n",
        ("group_vars/all.yml:1: munge_key has fewer than 32 characters, which munge refuses [unfit-secret]"),
    ),
    variables(
        "a munge key that is a short number",
        "munge_key: 1234567890123456789\n",
        "secrets.yml: munge_key has fewer than 32 characters, which munge refuses [unfit-secret]",
        file="secrets.yml",
    ),
    variables(
        "a password with a hash sign",
        "slurmdbd_database_password: 'k3Y_k3Y_k3Y_k3Y_#k3Y'\n",
        (
            "secrets.yml: slurmdbd_database_password has a space, quote, backslash or hash sign, which "
            "slurmdbd.conf cannot hold [unfit-secret]"
        ),
        file="secrets.yml",
    ),
    variables(
        "a password with a backslash",
        "slurmdbd_database_password: 'k3Y_k3Y_k3Y_k3Y_\\k3Y'\n",
        (
            "secrets.yml: slurmdbd_database_password has a space, quote, backslash or hash sign, which "
            "slurmdbd.conf cannot hold [unfit-secret]"
        ),
        file="secrets.yml",
    ),
    variables(
        "a password with a space",
        "slurmdbd_database_password: 'k3Y_ k3Y_k3Y_k3Y_k3Y'\n",
        (
            "group_vars/slurm-master.yml:1: slurmdbd_database_password has a space, quote, backslash or "
            "hash sign, which slurmdbd.conf cannot hold [unfit-secret]"
        ),
        file=MASTER,
    ),
    BadSite(
        "secrets.yml that others can read",
        expected=(
            (
                "secrets.yml: others than the owner may read this file, and it holds the cluster's "
                "secrets [secrets-readable]"
            ),
        ),
        files={"secrets.yml": "munge_key: k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_\n"},
        modes={"secrets.yml": 0o640},
    ),
    BadSite(
        "a secret in a file that others can read",
        expected=(
            (
                "group_vars/all.yml: others than the owner may read this file, and it holds munge_key "
                "[secrets-readable]"
            ),
        ),
        files={ALL: "munge_key: k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_\n"},
        modes={ALL: 0o644},
    ),
    BadSite(
        "a login password in an inventory that others can read",
        expected=(
            (
                "inventory.ini: others than the owner may read this file, and it holds "
                "ansible_become_password [secrets-readable]"
            ),
        ),
        edits=(("[slurm-master]", "[all:vars]\nansible_become_password=k3Yk3Y\n\n[slurm-master]"),),
        modes={"inventory.ini": 0o644},
    ),
    variables(
        "secrets.yml that is not YAML",
        "munge_key: [k3Yk3Y\n",
        ("secrets.yml:2: this file cannot be read: it is not YAML (its text is not shown) [secrets-invalid]"),
        file="secrets.yml",
    ),
    variables(
        "secrets.yml that is a list",
        "- munge_key\n",
        (
            "secrets.yml: this file cannot be read: it is not a mapping of names to values (its text "
            "is not shown) [secrets-invalid]"
        ),
        file="secrets.yml",
    ),
    variables(
        "a misspelled secret",
        "mung_key: k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_\n",
        "secrets.yml: no role knows the secret 'mung_key' [unknown-variable]",
        file="secrets.yml",
    ),
    variables(
        "a variable among the secrets",
        "slurmctld_cluster_name: a\n",
        (
            "secrets.yml: slurmctld_cluster_name is no secret, and deploy does not look for it here "
            "[not-a-secret]"
        ),
        file="secrets.yml",
    ),
    BadSite(
        "a secret in two places",
        expected=(
            (
                "group_vars/all.yml:1: munge_key is set here and in secrets.yml, which wins: this line "
                "changes nothing [secret-set-twice]"
            ),
        ),
        files={
            ALL: "munge_key: k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_\n",
            "secrets.yml": "munge_key: _Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k\n",
        },
    ),
    variables(
        "a secret for some hosts",
        "munge_key: k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_\n",
        (
            "group_vars/slurm-node.yml:1: munge_key is set for some hosts only; ctl1 would have none "
            "[secret-not-everywhere]"
        ),
        file=NODES,
    ),
    BadSite(
        "a user slurm who is another one on one host, and what is usual on the others",
        expected=(
            (
                "host_vars/node2.yml:1: users_slurm_uid must be the same on every host, and node1 has "
                "another one than node2 [differing-values]"
            ),
        ),
        files={"host_vars/node2.yml": "users_slurm_uid: 970\n"},
    ),
    BadSite(
        "two munge keys",
        expected=(
            (
                "host_vars/node2.yml:1: munge_key must be the same on every host, and node1 has another "
                "one than node2 [differing-values]"
            ),
        ),
        files={
            ALL: "munge_key: k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_k3Y_\n",
            "host_vars/node2.yml": "munge_key: _Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k_Y3k\n",
        },
    ),
    variables(
        "encrypted without a password",
        "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
        "secrets.yml: this file is encrypted with ansible-vault [vault-password-needed]",
        file="secrets.yml",
    ),
    variables(
        "a placeholder inside a variable",
        "mariadb_users: [{name: web, password: changeme, privileges: 'web.*:ALL'}]\n",
        (
            "group_vars/slurm-master.yml:1: mariadb_users[0].password is a placeholder or shorter "
            "than 16 characters [placeholder-secret]"
        ),
        file=MASTER,
    ),
    variables(
        "a secret of the wrong type",
        "munge_key: {inner: k3Yk3Y}\n",
        ("group_vars/all.yml:1: munge_key: the value is wrong (not shown: it is secret) [invalid-value]"),
    ),
    BadSite(
        "a secret in a line that cannot be read",
        expected=(
            (
                "inventory.ini:5: Ansible cannot read this: Failed to parse inventory: Error parsing "
                "host definition 'node2 ansible_host=10.0.0.12 munge_key=(not shown) [inventory-invalid]"
            ),
        ),
        edits=(("10.0.0.12", "10.0.0.12 munge_key='k3Yk3Y"),),
    ),
)

"""Files of group_vars and host_vars that are not read as they are meant."""

from tests.unit.site.bad.site import ALL, BadSite, variables

SITES = (
    variables(
        "group_vars that are not YAML",
        "slurmctld_cluster_name: [a\nsite_b: 1\n",
        (
            "group_vars/all.yml:2: Ansible cannot read this: YAML parsing failed: While parsing a "
            "flow sequence did not find expected ',' or ']'. [inventory-invalid]"
        ),
    ),
    variables(
        "a name twice in one file",
        "site_a: 1\nusers_create_home: true\nusers_create_home: false\n",
        (
            "group_vars/all.yml:3: Ansible cannot read this: YAML parsing failed: Found duplicate "
            "mapping key 'users_create_home'. [inventory-invalid]"
        ),
    ),
    variables(
        "group_vars that are a list",
        "- users_create_home\n",
        (
            "group_vars/all.yml: Ansible cannot read this: it is not a mapping of names to values "
            "[inventory-invalid]"
        ),
    ),
    BadSite(
        "group_vars that are not text",
        expected=(
            "group_vars/all.yml: Ansible cannot read this: it is not text in UTF-8 [inventory-invalid]",
        ),
        binary={ALL: b"site_a: \xff\xfe\n"},
    ),
    variables(
        "group_vars of a misspelled group",
        "slurmd_weight: 2\n",
        (
            "group_vars/slurm_node.yml: the inventory has no group 'slurm_node', so nothing reads "
            "these variables [vars-file-of-nobody]"
        ),
        file="group_vars/slurm_node.yml",
    ),
    variables(
        "group_vars of no group",
        "site_a: 1\n",
        (
            "group_vars/visualization.yml: warning: the inventory has no group 'visualization', so "
            "nothing reads these variables [vars-file-of-nobody]"
        ),
        file="group_vars/visualization.yml",
    ),
    variables(
        "host_vars of a misspelled host",
        "slurmd_weight: 2\n",
        (
            "host_vars/node02.yml: the inventory has no host 'node02', so nothing reads these "
            "variables [vars-file-of-nobody]"
        ),
        file="host_vars/node02.yml",
    ),
    BadSite(
        "two files for one group",
        expected=("group_vars/all.yml: Ansible reads all and not this file beside it [vars-file-ignored]",),
        files={ALL: "site_a: 1\n", "group_vars/all/main.yml": "site_b: 1\n"},
    ),
    variables(
        "group_vars with another ending",
        "site_a: 1\n",
        ("group_vars/all.txt: Ansible does not read a file with the ending '.txt' here [vars-file-ignored]"),
        file="group_vars/all.txt",
    ),
)

"""Accounts, QOS and users that Slurm or the hosts would refuse."""

from tests.unit.site.bad.site import MASTER, BadSite, variables

SITES = (
    BadSite(
        "a QOS of a partition that the database's host does not declare",
        (
            (
                "group_vars/slurm-master.yml:1: partition a: qos names the QOS gpus, which "
                "slurm_accounts_qos does not declare [undeclared-reference]"
            ),
        ),
        edits=(("[slurm-login]", "[slurm-database]\nlogin1\n[slurm-login]"),),
        files={
            MASTER: "slurmctld_partitions: [{name: a, default: true, qos: gpus}]\n",
            "group_vars/slurm-database.yml": "slurm_accounts_qos: [{name: gpu}]\n",
        },
    ),
    variables(
        "a partition with a QOS that is not declared",
        ("slurmctld_partitions: [{name: a, default: true, qos: gpus}]\nslurm_accounts_qos: [{name: gpu}]\n"),
        (
            "group_vars/all.yml:1: partition a: qos names the QOS gpus, which slurm_accounts_qos "
            "does not declare [undeclared-reference]"
        ),
    ),
    variables(
        "a QOS where none is declared",
        "slurmctld_partitions: [{name: a, default: true, qos: gpu}]\n",
        (
            "group_vars/all.yml:1: warning: partition a: qos names the QOS gpu, which "
            "slurm_accounts_qos does not declare; it must be in the accounting database already "
            "[undeclared-reference]"
        ),
    ),
    variables(
        "a parent that is not declared",
        "slurm_accounts_accounts: [{name: physics, parent: science}]\n",
        (
            "group_vars/all.yml:1: account physics: parent names the account science, which "
            "slurm_accounts_accounts does not declare [undeclared-reference]"
        ),
    ),
    variables(
        "parents in a circle",
        "slurm_accounts_accounts: [{name: a, parent: b}, {name: b, parent: a}]\n",
        "group_vars/all.yml:1: account a: its parents lead in a circle [invalid-accounting]",
        "group_vars/all.yml:1: account b: its parents lead in a circle [invalid-accounting]",
    ),
    variables(
        "an account that is not declared",
        (
            "slurm_accounts_accounts: [{name: physics}]\nslurm_accounts_users: [{name: alice, accounts: "
            "[chemistry]}]\n"
        ),
        (
            "group_vars/all.yml:2: user alice: accounts names the account chemistry, which "
            "slurm_accounts_accounts does not declare [undeclared-reference]"
        ),
    ),
    variables(
        "a default account of others",
        (
            "slurm_accounts_accounts: [{name: physics}, {name: biology}]\nslurm_accounts_users: [{name: "
            "alice, accounts: [physics], default_account: biology}]\n"
        ),
        (
            "group_vars/all.yml:2: user alice: default_account biology is not among its accounts "
            "[invalid-accounting]"
        ),
    ),
    variables(
        "a budget that Slurm is not told to heed",
        (
            "slurm_accounts_accounts: [{name: ice, budget: {hours: gres/gpu=5}}]\n"
            "slurmctld_accounting_enforce: [associations]\n"
        ),
        (
            "group_vars/all.yml:1: account ice has a budget, and slurmctld_accounting_enforce lacks limits, "
            "qos [budget-without-effect]"
        ),
    ),
    variables(
        "lower priorities where priorities weigh nothing",
        (
            "slurm_accounts_accounts:\n"
            "  - {name: ice, budget: {hours: gres/gpu=5, at_end: lower, lower_qos: low}}\n"
            "slurm_accounts_qos: [{name: low}]\nslurmctld_priority_weights: {age: 1000}\n"
        ),
        (
            "group_vars/all.yml:1: account ice has a budget with at_end: lower, and priorities of QOS weigh "
            "nothing [budget-without-effect]"
        ),
    ),
    variables(
        "a budget of nothing, and one whose jobs go on nowhere",
        (
            "slurm_accounts_accounts:\n"
            "  - {name: ice, budget: {hours: gres/gpu=0}}\n"
            "  - {name: snow, budget: {hours: cpu=5, at_end: lower, lower_qos: low}}\n"
        ),
        (
            "group_vars/all.yml:1: account ice: budget: hours are counted of cpu, node, billing, gres "
            "and license, as in gres/gpu=5000 [invalid-accounting]"
        ),
        (
            "group_vars/all.yml:1: account snow: budget.lower_qos names the QOS low, which slurm_accounts_"
            "qos does not declare [undeclared-reference]"
        ),
    ),
    variables(
        "members by groups, who would be purged",
        "slurm_accounts_accounts: [{name: ice, groups: [ice]}]\nslurm_accounts_purge: true\n",
        (
            "group_vars/all.yml:2: account ice: each run would take out whoever came by its groups, because "
            "slurm_accounts_purge is true [invalid-accounting]"
        ),
    ),
    variables(
        "capital letters",
        "slurm_accounts_accounts: [{name: Physics}]\n",
        (
            "group_vars/all.yml:1: slurm_accounts_accounts[0].name is 'Physics', not a name as Slurm "
            "keeps it: small letters, digits and _ . @ + -, in quotes where it is a number "
            "[invalid-value]"
        ),
    ),
    variables(
        "a name that YAML takes for a number",
        "slurm_accounts_accounts: [{name: 2024}]\n",
        (
            "group_vars/all.yml:1: slurm_accounts_accounts[0].name is 2024, not a name as Slurm "
            "keeps it: small letters, digits and _ . @ + -, in quotes where it is a number "
            "[invalid-value]"
        ),
    ),
    variables(
        "a user without accounts",
        "slurm_accounts_users: [{name: alice, accounts: []}]\n",
        (
            "group_vars/all.yml:1: user alice: accounts is empty; a user needs at least one "
            "[invalid-accounting]"
        ),
    ),
    variables(
        "resources that are none",
        "slurm_accounts_qos: [{name: gpu, max_tres: 8 GPUs}]\n",
        (
            "group_vars/all.yml:1: qos gpu: max_tres: '8 GPUs' is not a resource: name=amount, as in "
            "cpu=4,mem=8G,gres/gpu=2 [invalid-accounting]"
        ),
    ),
    variables(
        "a limit without quotes",
        "slurm_accounts_qos: [{name: gpu, max_wall: 24:00:00}]\n",
        (
            "group_vars/all.yml:1: qos gpu: max_wall is the number 86400 (YAML makes 86400 of "
            '24:00:00); put it in quotes, as in "1-00:00:00" or "60" [invalid-accounting]'
        ),
    ),
    variables(
        "one QOS twice",
        "slurm_accounts_qos: [{name: gpu}, {name: gpu}]\n",
        "group_vars/all.yml:1: qos gpu: declared twice [invalid-accounting]",
    ),
    variables(
        "a default QOS that is not allowed",
        (
            "slurm_accounts_qos: [{name: gpu}, {name: cpu}]\nslurm_accounts_accounts: [{name: a, qos: "
            "[cpu], default_qos: gpu}]\n"
        ),
        "group_vars/all.yml:2: account a: default_qos gpu is not among its qos [invalid-accounting]",
    ),
    variables(
        "one id for two people",
        "users_accounts: [{name: alice, uid: 2001}, {name: bob, uid: 2001}]\n",
        "group_vars/all.yml:1: uid 2001 is declared 2 times [invalid-users]",
    ),
    variables(
        "one person twice",
        "users_accounts: [{name: alice, uid: 2001}, {name: alice, uid: 2002}]\n",
        "group_vars/all.yml:1: alice is declared 2 times [invalid-users]",
    ),
    variables(
        "an id of the distribution",
        "users_accounts: [{name: alice, uid: 500}]\n",
        (
            "group_vars/all.yml:1: alice: uid 500 belongs to the distribution; use 1000 to 59999 "
            "[invalid-users]"
        ),
    ),
    variables(
        "the id of the slurm user",
        "users_accounts: [{name: alice, uid: 2001}]\nusers_slurm_uid: 2001\n",
        "group_vars/all.yml:1: alice: uid 2001 is slurm's own (users_slurm_uid) [invalid-users]",
    ),
    variables(
        "one id for two groups",
        "users_groups: [{name: a, gid: 3000}, {name: b, gid: 3000}]\n",
        "group_vars/all.yml:1: gid 3000 is declared 2 times [invalid-users]",
    ),
    variables(
        "a login name with capital letters",
        "users_accounts: [{name: Alice, uid: 2001}]\n",
        (
            "group_vars/all.yml:1: users_accounts[0].name is 'Alice', not a login name: small "
            "letters, digits, - and _, at most 32 [invalid-value]"
        ),
    ),
    variables(
        "a key of two lines",
        'users_accounts: [{name: alice, uid: 2001, ssh_keys: ["ssh-ed25519 A\\nssh-rsa B"]}]\n',
        (
            "group_vars/all.yml:1: users_accounts[0].ssh_keys[0] is not a public key on one line, as in a "
            "file that ends with .pub: ssh-ed25519 AAAA… name [invalid-value]"
        ),
    ),
)

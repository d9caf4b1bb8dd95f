"""Templates that never come to a value, or to a wrong one."""

from tests.unit.site.bad.site import ALL, NODES, BadSite, variables

SITES = (
    variables(
        "a template of a variable that is not there",
        'time_sync_options: "{{ site_options }}"\n',
        (
            "group_vars/all.yml:1: time_sync_options cannot be resolved: 'site_options' is undefined "
            "[undefined-variable]"
        ),
    ),
    variables(
        "every variable that is not there",
        'motd_text:\n  - "{{ site_one }}"\n  - fine\n  - "{{ site_two.key }} {{ 1 + 1 }}"\n',
        (
            "group_vars/all.yml:2: motd_text cannot be resolved for login1: 'site_one' is undefined "
            "[undefined-variable]"
        ),
        (
            "group_vars/all.yml:4: motd_text cannot be resolved for login1: 'site_two' is undefined "
            "[undefined-variable]"
        ),
    ),
    variables(
        "a variable that is not there, two templates away",
        'site_b: "{{ site_c }}"\ntime_sync_options: "{{ site_b }}"\n',
        (
            "group_vars/all.yml:1: time_sync_options cannot be resolved: 'site_c' is undefined "
            "[undefined-variable]"
        ),
    ),
    BadSite(
        "a variable that some hosts do not have",
        expected=(
            (
                "group_vars/all.yml:1: time_sync_options cannot be resolved for ctl1,login1,node2: "
                "'site_options' is undefined [undefined-variable]"
            ),
        ),
        files={ALL: 'time_sync_options: "{{ site_options }}"\n', "host_vars/node1.yml": "site_options: -4\n"},
    ),
    variables(
        "a fact that nothing gathers",
        "time_sync_options: \"{{ ansible_facts['default_ipv4'].address }}\"\n",
        (
            "group_vars/all.yml:1: time_sync_options cannot be resolved: object of type 'dict' has no "
            "attribute 'default_ipv4' [undefined-variable]"
        ),
    ),
    variables(
        "a variable that is not there, beside a fact",
        "time_sync_options: \"{{ ansible_facts['distribution'] }} {{ site_options }}\"\n",
        (
            "group_vars/all.yml:1: time_sync_options cannot be resolved: 'site_options' is undefined "
            "[undefined-variable]"
        ),
    ),
    variables(
        "a variable that is itself",
        'time_sync_options: "{{ time_sync_options }} -4"\n',
        (
            "group_vars/all.yml:1: time_sync_options cannot be resolved: it refers to itself "
            "[unresolvable-value]"
        ),
    ),
    variables(
        "variables in a circle",
        'site_a: "{{ site_b }}"\nsite_b: "{{ site_a }}"\ntime_sync_options: "{{ site_a }}"\n',
        (
            "group_vars/all.yml:1: time_sync_options cannot be resolved: it refers to itself "
            "[unresolvable-value]"
        ),
    ),
    variables(
        "a file that is not there",
        "time_sync_options: \"{{ lookup('file', '/no/such/file') }}\"\n",
        (
            "group_vars/all.yml:1: time_sync_options cannot be resolved: The lookup plugin 'file' failed: "
            "Unable to access the file '/no/such/file': File not found. [unresolvable-value]"
        ),
    ),
    variables(
        "a command that fails",
        "time_sync_options: \"{{ lookup('pipe', 'false') }}\"\n",
        (
            "group_vars/all.yml:1: time_sync_options cannot be resolved: The lookup plugin 'pipe' failed: "
            "lookup_plugin.pipe(false) returned 1 [unresolvable-value]"
        ),
    ),
    variables(
        "a filter that is none",
        'slurmd_options: "{{ 5 | bytes_of }}"\n',
        (
            "group_vars/slurm-node.yml:1: slurmd_options cannot be resolved for node[1-2]: Syntax error in "
            "template: No filter named 'bytes_of'. [unresolvable-value]"
        ),
        file=NODES,
    ),
    variables(
        "a template that divides by nothing",
        'motd_text: ["{{ 1 / 0 }}"]\n',
        (
            "group_vars/all.yml:1: motd_text cannot be resolved for login1: Error rendering template: "
            "division by zero [unresolvable-value]"
        ),
    ),
    variables(
        "a secret that cannot be looked up",
        "munge_key: \"{{ lookup('file', '/no/k3Y') }}\"\n",
        (
            "group_vars/all.yml:1: munge_key cannot be resolved: the reason is not shown: it is secret "
            "[unresolvable-value]"
        ),
    ),
    BadSite(
        "a secret of secrets.yml that is not there",
        expected=(
            "secrets.yml:1: munge_key cannot be resolved: 'site_munge' is undefined [undefined-variable]",
        ),
        files={"secrets.yml": 'munge_key: "{{ site_munge }}"\n'},
    ),
    variables(
        "a lookup that only hosts can do",
        "time_sync_options: \"{{ lookup('env', ansible_facts['distribution']) }}\"\n",
        (
            "group_vars/all.yml:1: warning: time_sync_options looks something up that only the host can "
            "name, so what reads it runs every time [lookup-unforeseen]"
        ),
    ),
    variables(
        "a template that comes to a wrong value",
        'slurmd_weight: "{{ site_weight }}"\nsite_weight: heavy\n',
        (
            "group_vars/slurm-node.yml:1: slurmd_weight is a template, but deploy must know it "
            "before Ansible resolves it [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "a template that comes to no port",
        'slurmdbd_port: "{{ site_port }}"\nsite_port: 70000\n',
        "group_vars/all.yml:1: slurmdbd_port is 70000, not a number from 1 to 65535 [invalid-value]",
    ),
    variables(
        "a template that comes to text for a list",
        'motd_text: "{{ site_text }}"\nsite_text: hello\n',
        "group_vars/all.yml:1: motd_text is text, not a list [invalid-value]",
    ),
)

"""Nodes that Slurm could not switch, or should not."""

from tests.unit.site.bad.site import ALL, NODES, BadSite, variables

_PROGRAMS = 'slurmctld_suspend_program: {text: "#!/bin/sh"}\nslurmctld_resume_program: {path: /sbin/resume}\n'
_HARDWARE = "slurmd_hardware: {cpus: 4, memory_mb: 8000, gpus: []}\n"
_SAVED = {NODES: f"{_HARDWARE}slurmd_power_saving: machine\n"}
_REFUSED = "[power-saving-without-programs]"

SITES = (
    BadSite(
        "nodes that nothing switches",
        (
            (
                "group_vars/slurm-node.yml:2: node1 has slurmd_power_saving, and slurmctld_suspend_program "
                f"and slurmctld_resume_program are not set: Slurm could not switch it {_REFUSED}"
            ),
        ),
        files=_SAVED,
    ),
    BadSite(
        "nodes that nothing switches on again",
        (
            (
                "group_vars/slurm-node.yml:2: node1 has slurmd_power_saving, and slurmctld_resume_program "
                f"is not set: Slurm could not switch it {_REFUSED}"
            ),
        ),
        files={**_SAVED, ALL: 'slurmctld_suspend_program: {text: "#!/bin/sh"}\n'},
    ),
    variables(
        "programs for no node",
        _PROGRAMS,
        (
            "group_vars/all.yml:1: warning: slurmctld_suspend_program is set, and no node has "
            "slurmd_power_saving: none is switched off [power-saving-without-nodes]"
        ),
    ),
    BadSite(
        "programs that are none",
        (
            (
                "group_vars/all.yml:1: slurmctld_suspend_program has a text that does not begin with #!/ "
                "[invalid-value]"
            ),
            (
                "group_vars/all.yml:2: slurmctld_resume_program has the path resume, which is not "
                "absolute, or has spaces [invalid-value]"
            ),
            "group_vars/all.yml:3: slurmctld_resume_fail_program has text and path [invalid-value]",
        ),
        files={
            **_SAVED,
            ALL: "slurmctld_suspend_program: {text: poweroff}\nslurmctld_resume_program: {path: resume}\n"
            'slurmctld_resume_fail_program: {path: /bin/true, text: "#!/bin/true"}\n',
        },
    ),
    BadSite(
        "a partition without its own power saving",
        (
            (
                "group_vars/all.yml:3: slurmctld_suspend_except_partitions names night, which is not "
                "declared [power-saving-unknown-partition]"
            ),
        ),
        files={**_SAVED, ALL: f"{_PROGRAMS}slurmctld_suspend_except_partitions: [night]\n"},
    ),
    BadSite(
        "two times after which nodes are switched off",
        (
            (
                "group_vars/all.yml:3: slurmctld_parameters has SuspendTime: nodes would be switched by "
                "something else than the rest of the inventory says [parameter-with-a-place]"
            ),
        ),
        files={**_SAVED, ALL: f"{_PROGRAMS}slurmctld_parameters: {{SuspendTime: 60}}\n"},
    ),
    BadSite(
        "a login node that is switched off",
        (
            (
                "group_vars/slurm-node.yml:2: node2 has slurmd_power_saving, and is in [slurm-login]: it "
                "would be switched off under those whom it serves [power-saving-of-a-server]"
            ),
        ),
        edits=(("[slurm-login]\nlogin1\n", "[slurm-login]\nlogin1\nnode2\n"),),
        files={**_SAVED, ALL: _PROGRAMS},
    ),
    BadSite(
        "a cloud node of which nothing is known",
        (
            (
                "group_vars/slurm-node.yml:1: node1 is made when a job needs it, and nothing says what it "
                "will have: there is no machine to ask [cloud-node-of-unknown-hardware]"
            ),
            (
                "group_vars/slurm-node.yml:1: node2 is made when a job needs it, and nothing says what it "
                "will have: there is no machine to ask [cloud-node-of-unknown-hardware]"
            ),
        ),
        files={NODES: "slurmd_power_saving: cloud\n", ALL: _PROGRAMS},
    ),
)

"""Programs around jobs that Slurm could not run, or that would run for the wrong people."""

from tests.unit.site.bad.site import MASTER, NODES, BadSite, variables
from tests.unit.site.sites import NODE_VARIABLES

AT = "group_vars/slurm-node.yml:1:"
TOO_LONG = (
    "may take {} s together, with deploy's own and 40 s to ask Slurm, and Slurm waits {} s ({}) "
    "[job-programs-too-long]"
)
SITES = (
    variables(
        "a program without a program",
        "job_programs_prolog: [{name: a}, {name: b, text: '#!/bin/sh', path: /b}]\n",
        f"{AT} job_programs_prolog: a has neither text nor path [invalid-value]",
        f"{AT} job_programs_prolog: b has text and path [invalid-value]",
        file=NODES,
    ),
    variables(
        "a program that nothing could start",
        "job_programs_epilog: [{name: a, text: echo}, {name: b, path: bin/b}]\n",
        f"{AT} job_programs_epilog: the path of b is not absolute [invalid-value]",
        f"{AT} job_programs_epilog: the text of a does not begin with #!/ [invalid-value]",
        file=NODES,
    ),
    variables(
        "a program whose name is a path",
        "job_programs_prolog: [{name: ../a, path: /a}]\n",
        f"{AT} job_programs_prolog[0].name is '../a', not a name: letters, digits, _ . and - [invalid-value]",
        file=NODES,
    ),
    variables(
        "a job that is over, sent back",
        "job_programs_epilog: [{name: a, path: /a, on_failure: requeue}]\n",
        f"{AT} job_programs_epilog[0].on_failure is 'requeue', not one of drain, ignore [invalid-value]",
        file=NODES,
    ),
    variables(
        "a program twice",
        "job_programs_epilog: [{name: a, path: /a}, {name: a, path: /b}]\n",
        f"{AT} job_programs_epilog has a 2 times, and only the last one would count [declared-twice]",
        file=NODES,
    ),
    variables(
        "programs for which Slurm does not wait",
        "job_programs_epilog: [{name: a, path: /a, seconds: 200}]\njob_programs_check_health: true\n"
        "job_programs_clean_up: false\njob_programs_prolog: [{name: b, path: /b, seconds: 300}]\n",
        f"group_vars/slurm-node.yml:4: the programs of job_programs_prolog {TOO_LONG}".format(
            340, 300, "PrologEpilogTimeout"
        ),
        file=NODES,
    ),
    BadSite(
        "programs for which this site's Slurm does not wait",
        expected=(
            f"{AT} the programs of job_programs_epilog {TOO_LONG}".format(110, 60, "PrologEpilogTimeout"),
            f"group_vars/slurm-node.yml:2: the programs of job_programs_prolog {TOO_LONG}".format(
                50, 20, "BatchStartTimeout"
            ),
        ),
        files={
            NODES: "job_programs_epilog: [{name: a, path: /a}, {name: b, path: /b, seconds: 40}]\n"
            "job_programs_prolog: [{name: c, path: /c, seconds: 10}]\n",
            MASTER: "slurmctld_parameters: {PrologEpilogTimeout: 60, BatchStartTimeout: 20}\n",
        },
    ),
    BadSite(
        "a prolog of the site beside its programs",
        expected=(
            (
                "group_vars/slurm-master.yml:1: slurmctld_parameters has Prolog: the programs of "
                "job_programs_prolog would not run [parameter-with-a-place]"
            ),
        ),
        files={
            NODES: "job_programs_prolog: [{name: a, path: /a}]\n",
            MASTER: "slurmctld_parameters: {prolog: /etc/slurm/prolog}\n",
        },
    ),
    BadSite(
        "people cleaned up on a login node",
        expected=(
            (
                f"{AT} node1 is a login node, too: job_programs_clean_up would end what people do there when "
                "a job of theirs ends [clean-up-on-login-node]"
            ),
        ),
        edits=(("[slurm-login]\nlogin1", "[slurm-login]\nlogin1\nnode1"),),
        files={NODES: "job_programs_clean_up: true\n"},
    ),
    variables(
        "files for GPUs that are divided",
        "job_programs_gpu_files: true\nmig_layout: [{devices: [1g.10gb]}]\n" + NODE_VARIABLES,
        *(
            f"{AT} job_programs_gpu_files: the GPUs of {node} are divided (mig_layout), and Slurm does not "
            "say which one an instance is of [invalid-value]"
            for node in ("node1", "node2")
        ),
        file=NODES,
    ),
)

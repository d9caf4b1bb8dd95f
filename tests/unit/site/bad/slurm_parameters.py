"""Parameters of slurm.conf that the rest of the cluster would not know, or could not do without."""

from tests.unit.site.bad.site import variables

SITES = (
    variables(
        "parameters that have a place of their own",
        "slurmctld_parameters: {clusterName: other, StateSaveLocation: /srv/state}\n",
        (
            "group_vars/all.yml:1: slurmctld_parameters has ClusterName, of which the rest of the cluster "
            "would not know [parameter-with-a-place]"
        ),
        (
            "group_vars/all.yml:1: slurmctld_parameters has StateSaveLocation, of which the rest of the "
            "cluster would not know [parameter-with-a-place]"
        ),
    ),
    variables(
        "nodes that would get no configuration",
        "slurmctld_parameters: {slurmctldparameters: ''}\n",
        (
            "group_vars/all.yml:1: slurmctld_parameters takes SlurmctldParameters away, and with it "
            "enable_configless: no node would get its configuration [nodes-without-configuration]"
        ),
    ),
    variables(
        "one parameter in two cases",
        "slurmctld_parameters: {MaxJobCount: 5, maxjobcount: 6}\n",
        (
            "group_vars/all.yml:1: slurmctld_parameters has MaxJobCount and maxjobcount, which are the same "
            "to Slurm [parameter-written-twice]"
        ),
    ),
    variables(
        "a port of slurmd beyond all ports",
        "slurmctld_parameters: {slurmdport: 99999}\n",
        (
            "group_vars/all.yml:1: slurmctld_parameters has SlurmdPort '99999', not a number from "
            "1 to 65535 [invalid-value]"
        ),
    ),
    variables(
        "several ports of slurmd, which has one",
        "slurmctld_parameters: {SlurmdPort: 7000-7003}\n",
        (
            "group_vars/all.yml:1: slurmctld_parameters has SlurmdPort '7000-7003', not a number "
            "from 1 to 65535 [invalid-value]"
        ),
    ),
    variables(
        "ports of slurmctld from high to low",
        "slurmctld_parameters: {SlurmctldPort: 7003-7000}\n",
        (
            "group_vars/all.yml:1: slurmctld_parameters has SlurmctldPort '7003-7000', not a port "
            "or a range of "
            "ports, as in 8000-8099 [invalid-value]"
        ),
    ),
)

"""Sources of energy that count twice, or have nothing to measure by."""

from tests.unit.site.bad.site import variables

SITES = (
    variables(
        "energy by what is no source",
        "slurmctld_energy_sources: [raple]\n",
        (
            "group_vars/all.yml:1: slurmctld_energy_sources[0] is 'raple', not one of gpu, ipmi, "
            "pm_counters, rapl, xcc [invalid-value]"
        ),
    ),
    variables(
        "energy of the whole node and of a part of it",
        "slurmctld_energy_sources: [rapl, ipmi]\n",
        (
            "group_vars/all.yml:1: slurmctld_energy_sources has ipmi, which measures the whole node, and "
            "rapl: Slurm adds them up [energy-counted-twice]"
        ),
    ),
    variables(
        "energy of GPUs that Slurm cannot ask",
        "slurmctld_energy_sources: [gpu]\n",
        (
            "group_vars/all.yml:1: slurmctld_energy_sources has gpu, and Slurm asks GPUs for their power by "
            "NVML alone [energy-without-nvml]"
        ),
    ),
    variables(
        "sensors that nobody reads",
        "slurmctld_energy_sources: [rapl]\nslurmctld_energy_sensors: {seconds: 10}\n",
        (
            "group_vars/all.yml:2: slurmctld_energy_sensors is set, and slurmctld_energy_sources has neither "
            "ipmi nor xcc: slurmctld would not start by it [energy-sensors-unused]"
        ),
    ),
    variables(
        "sensors that only others know",
        "slurmctld_energy_sources: [xcc]\nslurmctld_energy_sensors: {power_sensors: Node=16}\n",
        (
            "group_vars/all.yml:2: slurmctld_energy_sensors has power_sensors, which only ipmi knows: slurmd "
            "would not start by it [energy-sensors-unused]"
        ),
    ),
    variables(
        "sensors of no node, and counters that are read too late",
        "slurmctld_energy_sources: [ipmi]\nslurmctld_energy_sensors: {power_sensors: '16'}\n"
        "slurmctld_energy_node_seconds: 600\n",
        (
            "group_vars/all.yml:2: slurmctld_energy_sensors.power_sensors is '16', not sensors of the node "
            "and of its parts, as in Node=16,19;Socket0=16 or Node=DCMI [invalid-value]"
        ),
        (
            "group_vars/all.yml:3: slurmctld_energy_node_seconds is 600, not a number from 0 to 299 "
            "[invalid-value]"
        ),
    ),
    variables(
        "energy by a parameter alone",
        "slurmctld_parameters: {AcctGatherEnergyType: acct_gather_energy/rapl, CredType: cred/munge}\n",
        (
            "group_vars/all.yml:1: slurmctld_parameters has AcctGatherEnergyType, of which the rest of the "
            "cluster would not know [parameter-with-a-place]"
        ),
        (
            "group_vars/all.yml:1: slurmctld_parameters has CredType, of which the rest of the cluster would "
            "not know [parameter-with-a-place]"
        ),
    ),
)

"""Machines: processors, memory, network, clocks, services, and what Slurm says of them."""

from deploy.monitoring.panel import NODE, ORANGE, RED, Dashboard, Panel, Query, Row

_ON = 'instance=~"$node"'
_NEEDED = "(munge|slurm.*|chrony)[.]service"
_CARDS = f'{_ON},device!~"lo|veth.*|docker.*|br-.*"'

NODES = Dashboard(
    "deploy-nodes",
    "Nodes",
    "Machines, as they and Slurm say.",
    (
        Row(
            "State",
            (
                Panel(
                    "Nodes",
                    "short",
                    (
                        Query('sum by (node, state) (slurm_node_state{node=~"$node"})'),
                        Query('sum by (node) (slurm_node_cpus{node=~"$node"})'),
                        Query('sum by (node) (slurm_node_cpus_allocated{node=~"$node"})'),
                        Query('sum by (node) (slurm_node_memory_bytes{node=~"$node"})'),
                        Query('sum by (node) (slurm_node_memory_allocated_bytes{node=~"$node"})'),
                        Query('sum by (node) (slurm_node_gpus{node=~"$node"})'),
                        Query('sum by (node) (slurm_node_gpus_allocated{node=~"$node"})'),
                    ),
                    kind="table",
                    width=24,
                    columns={
                        "node": ("Node", ""),
                        "state": ("State", ""),
                        "Value #B": ("CPUs", "short"),
                        "Value #C": ("CPUs allocated", "short"),
                        "Value #D": ("Memory", "bytes"),
                        "Value #E": ("Memory allocated", "bytes"),
                        "Value #F": ("GPUs", "short"),
                        "Value #G": ("GPUs allocated", "short"),
                    },
                    link=("deploy-gpus", "node"),
                    link_label="Node",
                ),
            ),
        ),
        Row(
            "Processors and memory",
            (
                Panel(
                    "CPU use",
                    "percentunit",
                    (Query(f"instance:cpu_used:ratio{{{_ON}}}", "{{instance}}"),),
                    maximum=1,
                    link=("deploy-nodes", "node"),
                    link_label="instance",
                ),
                Panel(
                    "Load per CPU",
                    "short",
                    (
                        Query(
                            f"node_load5{{{_ON}}} / on (instance) count by (instance)"
                            f' (node_cpu_seconds_total{{{_ON},mode="idle"}})',
                            "{{instance}}",
                        ),
                    ),
                    meaning="More than 1 means that programs wait for a CPU.",
                ),
                Panel(
                    "Memory used",
                    "percentunit",
                    (Query(f"instance:memory_used:ratio{{{_ON}}}", "{{instance}}"),),
                    maximum=1,
                ),
                Panel(
                    "Memory that programs have",
                    "bytes",
                    (
                        Query(
                            f"node_memory_MemTotal_bytes{{{_ON}}} - node_memory_MemAvailable_bytes{{{_ON}}}",
                            "{{instance}}",
                        ),
                    ),
                ),
                Panel(
                    "Killed for memory",
                    "short",
                    (Query(f"increase(node_vmstat_oom_kill{{{_ON}}}[$__rate_interval])", "{{instance}}"),),
                    meaning="Jobs that took more than they asked for count, too.",
                ),
                Panel(
                    "Waiting for memory, disks or CPUs",
                    "percentunit",
                    (
                        Query(
                            f"rate(node_pressure_memory_waiting_seconds_total{{{_ON}}}[$__rate_interval])",
                            "{{instance}} memory",
                        ),
                        Query(
                            f"rate(node_pressure_io_waiting_seconds_total{{{_ON}}}[$__rate_interval])",
                            "{{instance}} disks",
                        ),
                        Query(
                            f"rate(node_pressure_cpu_waiting_seconds_total{{{_ON}}}[$__rate_interval])",
                            "{{instance}} CPUs",
                        ),
                    ),
                    meaning=(
                        "The part of the time in which some program had to wait (pressure stall information)."
                    ),
                ),
            ),
        ),
        Row(
            "Network",
            (
                Panel(
                    "Received",
                    "Bps",
                    (
                        Query(
                            f"rate(node_network_receive_bytes_total{{{_CARDS}}}[$__rate_interval])",
                            "{{instance}} {{device}}",
                        ),
                    ),
                ),
                Panel(
                    "Sent",
                    "Bps",
                    (
                        Query(
                            f"rate(node_network_transmit_bytes_total{{{_CARDS}}}[$__rate_interval])",
                            "{{instance}} {{device}}",
                        ),
                    ),
                ),
                Panel(
                    "Errors and drops",
                    "pps",
                    (
                        Query(
                            f"rate(node_network_receive_errs_total{{{_CARDS}}}[$__rate_interval])",
                            "{{instance}} {{device}} errors",
                        ),
                        Query(
                            f"rate(node_network_receive_drop_total{{{_CARDS}}}[$__rate_interval])",
                            "{{instance}} {{device}} drops",
                        ),
                    ),
                ),
                Panel(
                    "InfiniBand",
                    "Bps",
                    (
                        Query(
                            f"rate(node_infiniband_port_data_received_bytes_total{{{_ON}}}[$__rate_interval])",
                            "{{instance}} {{device}} in",
                        ),
                        Query(
                            f"rate(node_infiniband_port_data_transmitted_bytes_total{{{_ON}}}[$__rate_interval])",
                            "{{instance}} {{device}} out",
                        ),
                    ),
                    needs="an InfiniBand card",
                ),
            ),
        ),
        Row(
            "Health",
            (
                Panel(
                    "Clock",
                    "s",
                    (Query(f"node_timex_offset_seconds{{{_ON}}}", "{{instance}}"),),
                    meaning="How far the kernel thinks its clock is off.",
                    minimum=None,
                ),
                Panel(
                    "Temperature",
                    "celsius",
                    (Query(f"max by (instance) (node_hwmon_temp_celsius{{{_ON}}})", "{{instance}}"),),
                    needs="sensors",
                ),
                Panel(
                    "Running since",
                    "s",
                    (Query(f"time() - node_boot_time_seconds{{{_ON}}}", "{{instance}}"),),
                    kind="bargauge",
                ),
                Panel(
                    "Services that do not run",
                    "short",
                    (
                        Query(
                            f'node_systemd_unit_state{{{_ON},state="failed"}} == 1'
                            f' or node_systemd_unit_state{{{_ON},name=~"{_NEEDED}",state="active"}} == 0'
                        ),
                    ),
                    kind="table",
                    width=16,
                    columns={"instance": ("Host", ""), "name": ("Service", ""), "state": ("State", "")},
                    needs="a service that does not run",
                ),
                Panel(
                    "Answers slurmctld",
                    "bool_yes_no",
                    (Query('slurm_node_responding{node=~"$node"}', "{{node}}"),),
                    kind="stat",
                    thresholds=((0, RED), (1, "green")),
                ),
                Panel(
                    "Open files",
                    "percentunit",
                    (
                        Query(
                            f"node_filefd_allocated{{{_ON}}} / node_filefd_maximum{{{_ON}}}", "{{instance}}"
                        ),
                    ),
                    maximum=1,
                    thresholds=((0.8, ORANGE),),
                ),
            ),
        ),
    ),
    (NODE,),
)

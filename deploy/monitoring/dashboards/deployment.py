"""What deploy put in place, when, and what differs between hosts."""

from deploy.monitoring.panel import GREEN, NODE, ORANGE, RED, Dashboard, Panel, Query, Row

_ON = 'instance=~"$node"'

DEPLOYMENT = Dashboard(
    "deploy-deployment",
    "Deployment",
    (
        "What `deploy cluster` converged and when, versions, and hosts that differ. `deploy status` "
        "names what drifted."
    ),
    (
        Row(
            "Now",
            (
                Panel(
                    "Hosts that answer",
                    "short",
                    (Query(f'sum(up{{job="node",{_ON}}})'),),
                    kind="stat",
                    width=6,
                    height=5,
                ),
                Panel(
                    "Versions of slurm.conf in use",
                    "short",
                    (Query(f"count(count by (sha256) (deploy_slurm_configuration_info{{{_ON}}}))"),),
                    kind="stat",
                    width=6,
                    height=5,
                    thresholds=((2, RED),),
                ),
                Panel(
                    "Versions of deploy that converged hosts",
                    "short",
                    (Query(f"count(count by (version) (deploy_phase_info{{{_ON}}}))"),),
                    kind="stat",
                    width=6,
                    height=5,
                    thresholds=((2, ORANGE),),
                ),
                Panel(
                    "Kernels in use",
                    "short",
                    (Query(f"count(count by (release) (node_uname_info{{{_ON}}}))"),),
                    kind="stat",
                    width=6,
                    height=5,
                    thresholds=((2, ORANGE),),
                ),
            ),
        ),
        Row(
            "Hosts",
            (
                Panel(
                    "Converged",
                    "s",
                    (
                        Query(
                            f"time() - max by (instance) (deploy_phase_converged_timestamp_seconds{{{_ON}}})"
                        ),
                        Query(
                            f"time() - min by (instance) (deploy_phase_converged_timestamp_seconds{{{_ON}}})"
                        ),
                        Query(f"count by (instance) (deploy_phase_converged_timestamp_seconds{{{_ON}}})"),
                        Query(f"sum by (instance, sha256) (deploy_slurm_configuration_info{{{_ON}}})"),
                    ),
                    kind="table",
                    width=12,
                    height=10,
                    meaning=(
                        "Of what a host's last run had nothing to do, the time is that of the run before."
                    ),
                    columns={
                        "instance": ("Host", ""),
                        "Value #A": ("Last phase", "s"),
                        "Value #B": ("Oldest phase", "s"),
                        "Value #C": ("Phases", "short"),
                        "sha256": ("slurm.conf", ""),
                    },
                    link=("deploy-nodes", "node"),
                    link_label="Host",
                ),
                Panel(
                    "Systems",
                    "short",
                    (Query(f"sum by (instance, release, version) (node_uname_info{{{_ON}}})"),),
                    kind="table",
                    width=12,
                    height=10,
                    columns={
                        "instance": ("Host", ""),
                        "release": ("Kernel", ""),
                        "version": ("Built", ""),
                    },
                ),
                Panel(
                    "Phases",
                    "s",
                    (
                        Query(
                            f"time() - max by (phase) (deploy_phase_converged_timestamp_seconds{{{_ON}}})",
                            "{{phase}}",
                        ),
                    ),
                    kind="bargauge",
                    width=12,
                    height=10,
                    meaning="How long ago a phase did something on any host.",
                ),
                Panel(
                    "NVIDIA drivers",
                    "short",
                    (Query(f"sum by (instance, module, library) (deploy_nvidia_driver_match{{{_ON}}})"),),
                    kind="table",
                    width=12,
                    height=10,
                    columns={
                        "instance": ("Host", ""),
                        "module": ("Kernel module", ""),
                        "library": ("Library", ""),
                        "Value": ("Match", "bool_yes_no"),
                    },
                    needs="an NVIDIA driver",
                ),
            ),
        ),
        Row(
            "Monitoring",
            (
                Panel(
                    "Targets",
                    "bool_yes_no",
                    (Query('up{job!="node"}', "{{job}} {{instance}}"),),
                    kind="stat",
                    width=12,
                    thresholds=((0, RED), (1, GREEN)),
                ),
                Panel(
                    "Services that are probed",
                    "bool_yes_no",
                    (Query("probe_success", "{{service}} {{instance}}"),),
                    kind="stat",
                    width=12,
                    thresholds=((0, RED), (1, GREEN)),
                    needs="probes",
                ),
                Panel(
                    "Series",
                    "short",
                    (Query("prometheus_tsdb_head_series", "{{instance}}"),),
                    width=6,
                ),
                Panel(
                    "munge works",
                    "bool_yes_no",
                    (Query(f"deploy_munge_success{{{_ON}}}", "{{instance}}"),),
                    kind="stat",
                    width=6,
                    thresholds=((0, RED), (1, GREEN)),
                ),
            ),
        ),
    ),
    (NODE,),
)

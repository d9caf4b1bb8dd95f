"""The whole cluster on one page."""

from deploy.monitoring.panel import ORANGE, PARTITION, RED, Dashboard, Panel, Query, Row


def _by_state(title: str, unit: str, metric: str) -> Panel:
    return Panel(title, unit, (Query(f"sum by (state) ({metric})", "{{state}}"),), stacked=True)


def _used(title: str, metric: str, needs: str = "") -> Panel:
    return Panel(
        title,
        "percentunit",
        (Query(f'sum({metric}{{state="allocated"}}) / sum({metric})'),),
        kind="gauge",
        width=4,
        height=6,
        maximum=1,
        needs=needs,
    )


CLUSTER = Dashboard(
    "deploy-cluster",
    "Cluster",
    "What the cluster has, what of it jobs use, and what is wrong.",
    (
        Row(
            "Now",
            (
                Panel(
                    "Nodes that take jobs",
                    "short",
                    (Query('sum(slurm_nodes{state=~"idle|mixed|allocated|completing|planned|reserved"})'),),
                    kind="stat",
                    width=4,
                    height=6,
                    link=("deploy-nodes", ""),
                ),
                Panel(
                    "Nodes down or drained",
                    "short",
                    (Query('sum(slurm_nodes{state=~"down|drained|draining|failing"})'),),
                    kind="stat",
                    width=4,
                    height=6,
                    thresholds=((1, ORANGE), (5, RED)),
                ),
                _used("CPUs allocated", "slurm_cpus"),
                _used("GPUs allocated", "slurm_gpus", "GPUs in slurm.conf"),
                _used("Memory allocated", "slurm_memory_bytes"),
                Panel(
                    "Alerts",
                    "short",
                    (
                        Query(
                            'count(ALERTS{alertstate="firing",severity="critical"}) or vector(0)', "critical"
                        ),
                        Query(
                            'count(ALERTS{alertstate="firing",severity="warning"}) or vector(0)', "warning"
                        ),
                    ),
                    kind="stat",
                    width=4,
                    height=6,
                    thresholds=((1, RED),),
                ),
            ),
        ),
        Row(
            "Use",
            (
                _by_state("Nodes", "short", "slurm_nodes"),
                _by_state("CPUs", "short", "slurm_cpus"),
                _by_state("GPUs", "short", "slurm_gpus"),
                _by_state("Memory", "bytes", "slurm_memory_bytes"),
                Panel(
                    "Jobs",
                    "short",
                    (Query('sum by (state) (slurm_jobs{partition=~"$partition"})', "{{state}}"),),
                    stacked=True,
                    link=("deploy-queue", ""),
                    needs="jobs",
                ),
                Panel(
                    "How long the oldest job has waited",
                    "s",
                    (Query('slurm_jobs_pending_oldest_seconds{partition=~"$partition"}', "{{partition}}"),),
                    needs="jobs",
                    meaning="Held jobs, and those that wait on purpose, do not count.",
                    link=("deploy-queue", "partition"),
                ),
            ),
        ),
        Row(
            "Machines",
            (
                Panel(
                    "CPU use",
                    "percentunit",
                    (
                        Query("avg(instance:cpu_used:ratio)", "average"),
                        Query("max(instance:cpu_used:ratio)", "highest"),
                    ),
                    maximum=1,
                ),
                Panel(
                    "GPU use",
                    "percentunit",
                    (
                        Query("avg(gpu:utilization:ratio)", "average"),
                        Query("max(gpu:utilization:ratio)", "highest"),
                    ),
                    maximum=1,
                    needs="a GPU",
                ),
                Panel("Power of all GPUs", "watt", (Query("sum(gpu:power:watts)", "all"),), needs="a GPU"),
            ),
        ),
        Row(
            "What is wrong",
            (
                Panel(
                    "Alerts that fire",
                    "short",
                    (Query('sum by (alertname, severity, instance) (ALERTS{alertstate="firing"})'),),
                    kind="table",
                    width=12,
                    height=9,
                    columns={
                        "alertname": ("Alert", ""),
                        "severity": ("Severity", ""),
                        "instance": ("Host", ""),
                    },
                    needs="an alert that fires",
                ),
                Panel(
                    "Nodes out of service",
                    "short",
                    (Query("time() - slurm_node_reason_timestamp_seconds"),),
                    kind="table",
                    width=12,
                    height=9,
                    columns={
                        "node": ("Node", ""),
                        "reason": ("Reason", ""),
                        "user": ("By", ""),
                        "Value": ("Since", "s"),
                    },
                    link=("deploy-nodes", "node"),
                    link_label="Node",
                    needs="a node that is drained",
                ),
            ),
        ),
    ),
    (PARTITION,),
)

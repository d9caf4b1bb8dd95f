"""What waits in Slurm's queue, for what and how long."""

from deploy.monitoring.panel import ORANGE, PARTITION, RED, Dashboard, Panel, Query, Row

_IN = 'partition=~"$partition"'
_OUT = 'state=~"down|drained|draining"'
_WAITING = f'{_IN},state="pending"'


def _wait(part: float) -> Query:
    buckets = f"rate(slurm_job_wait_seconds_bucket{{{_IN}}}[1h])"
    return Query(f"histogram_quantile({part}, sum by (le) ({buckets}))", f"{part:.0%} waited less")


def _by(label: str, title: str, unit: str, series: str, needs: str) -> Panel:
    """Series stacked by one of their labels."""
    query = Query(f"sum by ({label}) ({series})", f"{{{{{label}}}}}")
    return Panel(title, unit, (query,), stacked=True, needs=needs)


QUEUE = Dashboard(
    "deploy-queue",
    "Slurm queue",
    "What waits and runs, by partition.",
    (
        Row(
            "Now",
            (
                Panel(
                    "Running",
                    "short",
                    (Query(f'sum(slurm_jobs{{{_IN},state="running"}}) or vector(0)'),),
                    kind="stat",
                    width=4,
                    height=5,
                ),
                Panel(
                    "Waiting",
                    "short",
                    (Query(f"sum(slurm_jobs{{{_WAITING}}}) or vector(0)"),),
                    kind="stat",
                    width=4,
                    height=5,
                ),
                Panel(
                    "GPUs that are waited for",
                    "short",
                    (Query(f"sum(slurm_jobs_gpus{{{_WAITING}}}) or vector(0)"),),
                    kind="stat",
                    width=4,
                    height=5,
                ),
                Panel(
                    "CPUs that are waited for",
                    "short",
                    (Query(f"sum(slurm_jobs_cpus{{{_WAITING}}}) or vector(0)"),),
                    kind="stat",
                    width=4,
                    height=5,
                ),
                Panel(
                    "Oldest has waited",
                    "s",
                    (Query(f"max(slurm_jobs_pending_oldest_seconds{{{_IN}}}) or vector(0)"),),
                    kind="stat",
                    width=4,
                    height=5,
                    thresholds=((86400, ORANGE), (7 * 86400, RED)),
                ),
                Panel(
                    "Completing since",
                    "s",
                    (Query("max(slurm_jobs_completing_oldest_seconds)"),),
                    kind="stat",
                    width=4,
                    height=5,
                    thresholds=((300, ORANGE), (900, RED)),
                ),
            ),
        ),
        Row(
            "Queue",
            (
                _by("state", "Jobs by state", "short", f"slurm_jobs{{{_IN}}}", needs="jobs"),
                _by(
                    "reason", "Why jobs wait", "short", f"slurm_jobs_pending{{{_IN}}}", needs="jobs that wait"
                ),
                _by(
                    "partition",
                    "Waiting by partition",
                    "short",
                    f"slurm_jobs{{{_WAITING}}}",
                    needs="jobs that wait",
                ),
                _by(
                    "state",
                    "CPUs, running and waited for",
                    "short",
                    f"slurm_jobs_cpus{{{_IN}}}",
                    needs="jobs",
                ),
                _by(
                    "state",
                    "GPUs, running and waited for",
                    "short",
                    f"slurm_jobs_gpus{{{_IN}}}",
                    needs="jobs",
                ),
                _by(
                    "state",
                    "Memory, running and waited for",
                    "bytes",
                    f"slurm_jobs_memory_bytes{{{_IN}}}",
                    needs="jobs",
                ),
            ),
        ),
        Row(
            "Waiting times and ends",
            (
                Panel(
                    "How long jobs waited that started",
                    "s",
                    (_wait(0.5), _wait(0.9)),
                    meaning="Within the last hour, from when a job could have started.",
                    needs="jobs that started within the last hour",
                ),
                Panel(
                    "Starts",
                    "short",
                    (
                        Query(
                            f"sum by (partition) (increase(slurm_job_wait_seconds_count{{{_IN}}}[1h]))",
                            "{{partition}}",
                        ),
                    ),
                    needs="jobs",
                    meaning="Jobs that started, per hour.",
                ),
                Panel(
                    "Ends",
                    "short",
                    (Query(f"sum by (state) (increase(slurm_jobs_ended_total{{{_IN}}}[1h]))", "{{state}}"),),
                    needs="jobs",
                    meaning="Jobs that ended, per hour, by how they did.",
                    stacked=True,
                ),
            ),
        ),
        Row(
            "Partitions",
            (
                Panel(
                    "Partitions",
                    "short",
                    (
                        Query(f"sum by (partition) (slurm_partition_nodes{{{_IN}}})"),
                        Query(f"sum by (partition) (slurm_partition_nodes{{{_IN},{_OUT}}})"),
                        Query(f'sum by (partition) (slurm_partition_cpus{{{_IN},state="idle"}})'),
                        Query(f'sum by (partition) (slurm_partition_gpus{{{_IN},state="idle"}})'),
                        Query(f'sum by (partition) (slurm_partition_memory_bytes{{{_IN},state="idle"}})'),
                        Query(f'sum by (partition) (slurm_partition_state{{{_IN},state="up"}})'),
                    ),
                    kind="table",
                    width=24,
                    columns={
                        "partition": ("Partition", ""),
                        "Value #F": ("Up", "bool_yes_no"),
                        "Value #A": ("Nodes", "short"),
                        "Value #B": ("Down or drained", "short"),
                        "Value #C": ("Idle CPUs", "short"),
                        "Value #D": ("Idle GPUs", "short"),
                        "Value #E": ("Idle memory", "bytes"),
                    },
                    link=("deploy-queue", "partition"),
                    link_label="Partition",
                ),
            ),
        ),
    ),
    (PARTITION,),
)

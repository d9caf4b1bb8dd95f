"""The largest jobs that run, and one of them with its nodes."""

from deploy.monitoring.panel import JOB, ORANGE, Dashboard, Panel, Query, Row

_JOB = '{job_id="$job_id"}'
_END = f"slurm_job_start_timestamp_seconds{_JOB} + slurm_job_time_limit_seconds{_JOB}"
_LATELY = "avg_over_time(gpu:utilization:ratio[15m])"
_RUNS = "jobs that run"
# The nodes of the job, under the label that their exporters have.
_ITS_NODES = f'max by (instance) (label_replace(slurm_job_node{_JOB}, "instance", "$1", "node", "(.+)"))'
_ON_NODES = f"* on (instance) group_left () {_ITS_NODES}"
_ITS_GPUS = f"gpu:job:info{_JOB}"
_WHOSE = "Of the job's own GPUs where its exporter knows them (job_programs_gpu_files), else of its nodes."


def _number(title: str, unit: str, expr: str, *, needs: str = _RUNS) -> Panel:
    return Panel(title, unit, (Query(expr),), kind="stat", width=4, height=5, minimum=None, needs=needs)


def _of_nodes(title: str, unit: str, metric: str) -> Panel:
    return Panel(title, unit, (Query(f"{metric} {_ON_NODES}", "{{instance}}"),), needs=_RUNS)


def _of_gpus(title: str, unit: str, metric: str) -> Panel:
    own = f"{metric} * on (instance, gpu) group_left () {_ITS_GPUS}"
    of_nobody_else = f"{metric} {_ON_NODES} unless on () {_ITS_GPUS} unless on (instance, gpu) gpu:job:info"
    query = Query(f"{own} or {of_nobody_else}", "{{instance}} GPU {{gpu}}")
    return Panel(title, unit, (query,), meaning=_WHOSE, needs="a GPU")


JOBS = Dashboard(
    "deploy-jobs",
    "Jobs",
    "The largest jobs that run (slurm_metrics_named_jobs says how many), and one of them.",
    (
        Row(
            "Largest jobs",
            (
                Panel(
                    "Largest jobs that run",
                    "short",
                    (
                        Query("sum by (job_id, user, account, partition, qos) (slurm_job_info)"),
                        Query("sum by (job_id) (slurm_job_cpus)"),
                        Query("sum by (job_id) (slurm_job_gpus)"),
                        Query("sum by (job_id) (slurm_job_memory_bytes)"),
                        Query("time() - max by (job_id) (slurm_job_start_timestamp_seconds)"),
                        Query("count by (job_id) (slurm_job_node)"),
                        Query(f"avg by (job_id) (gpu:job:info * on (instance, gpu) group_left () {_LATELY})"),
                    ),
                    kind="table",
                    width=24,
                    height=10,
                    columns={
                        "job_id": ("Job", ""),
                        "user": ("User", ""),
                        "account": ("Account", ""),
                        "partition": ("Partition", ""),
                        "qos": ("QOS", ""),
                        "Value #F": ("Nodes", "short"),
                        "Value #B": ("CPUs", "short"),
                        "Value #C": ("GPUs", "short"),
                        "Value #G": ("GPU use", "percentunit"),
                        "Value #D": ("Memory", "bytes"),
                        "Value #E": ("Runs for", "s"),
                    },
                    link=("deploy-jobs", "job_id"),
                    link_label="Job",
                    needs=_RUNS,
                ),
            ),
        ),
        Row(
            "Job $job_id",
            (
                _number("CPUs", "short", f"slurm_job_cpus{_JOB}"),
                _number("GPUs", "short", f"slurm_job_gpus{_JOB}"),
                _number("Memory", "bytes", f"slurm_job_memory_bytes{_JOB}"),
                _number("Runs for", "s", f"time() - slurm_job_start_timestamp_seconds{_JOB}"),
                _number("Time left", "s", f"{_END} - time()", needs="a job with a time limit"),
                _number("Nodes", "short", f"count(slurm_job_node{_JOB})"),
                _of_nodes("CPU use of its nodes", "percentunit", "instance:cpu_used:ratio"),
                _of_nodes("Memory used on its nodes", "percentunit", "instance:memory_used:ratio"),
                _of_gpus("GPU use", "percentunit", "gpu:utilization:ratio"),
                _of_gpus("GPU memory used", "bytes", "gpu:memory_used:bytes"),
                _of_gpus("GPU power", "watt", "gpu:power:watts"),
                Panel(
                    "Network of its nodes",
                    "Bps",
                    (
                        Query(
                            "sum by (instance) (rate(node_network_receive_bytes_total[$__rate_interval]))"
                            + _ON_NODES,
                            "{{instance}} in",
                        ),
                        Query(
                            "sum by (instance) (rate(node_network_transmit_bytes_total[$__rate_interval]))"
                            + _ON_NODES,
                            "{{instance}} out",
                        ),
                    ),
                    meaning="Of all jobs on these nodes.",
                    needs=_RUNS,
                ),
            ),
        ),
        Row(
            "Use against allocation",
            (
                Panel(
                    "CPUs allocated and used",
                    "short",
                    (
                        Query("sum(slurm_node_cpus_allocated)", "allocated"),
                        Query("sum(slurm_node_cpu_load)", "load"),
                    ),
                    width=12,
                ),
                Panel(
                    "GPUs allocated and idle for an hour",
                    "short",
                    (
                        Query(
                            "max by (instance) (max_over_time(gpu:utilization:ratio[1h])) < bool 0.01"
                            " and on (instance) instance:slurm_gpus_allocated:count > 0",
                            "{{instance}}",
                        ),
                    ),
                    width=12,
                    thresholds=((1, ORANGE),),
                    needs="a GPU",
                ),
            ),
        ),
    ),
    (JOB,),
)

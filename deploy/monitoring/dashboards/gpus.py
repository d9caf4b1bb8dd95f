"""GPUs: use, memory, power, heat, clocks and errors."""

from deploy.monitoring.panel import NODE, ORANGE, RED, Dashboard, Panel, Query, Row

_ON = '{instance=~"$node"}'
_NAME = "{{instance}} GPU {{gpu}}"
_GPU = "a GPU"
_DCGM = "a GPU and dcgm-exporter"
_JOBS = "jobs that its exporter knows (job_programs_gpu_files)"
_WHOSE = (
    f"max by (instance, gpu, job_id, user) (gpu:job:info{_ON}"
    " * on (job_id) group_left (user) max by (job_id, user) (slurm_job_info))"
)


def _of_gpus(
    title: str, unit: str, metric: str, meaning: str = "", *, maximum: float | None = None, needs: str = _GPU
) -> Panel:
    return Panel(
        title, unit, (Query(f"{metric}{_ON}", _NAME),), meaning=meaning, maximum=maximum, needs=needs
    )


GPUS = Dashboard(
    "deploy-gpus",
    "GPUs",
    "GPUs, whichever exporter reports them.",
    (
        Row(
            "Now",
            (
                Panel(
                    "GPUs that the driver shows",
                    "short",
                    (Query(f"count(gpu:utilization:ratio{_ON})"),),
                    kind="stat",
                    width=4,
                    height=6,
                    needs=_GPU,
                ),
                Panel(
                    "GPUs that jobs have",
                    "short",
                    (Query('sum(slurm_node_gpus_allocated{node=~"$node"})'),),
                    kind="stat",
                    width=4,
                    height=6,
                ),
                Panel(
                    "Average use",
                    "percentunit",
                    (Query(f"avg(gpu:utilization:ratio{_ON})"),),
                    kind="gauge",
                    width=4,
                    height=6,
                    maximum=1,
                    needs=_GPU,
                ),
                Panel(
                    "Hottest",
                    "celsius",
                    (Query(f"max(gpu:temperature:celsius{_ON})"),),
                    kind="gauge",
                    width=4,
                    height=6,
                    maximum=100,
                    thresholds=((75, ORANGE), (85, RED)),
                    needs=_GPU,
                ),
                Panel(
                    "Power of all",
                    "watt",
                    (Query(f"sum(gpu:power:watts{_ON})"),),
                    kind="stat",
                    width=4,
                    height=6,
                    needs=_GPU,
                ),
                Panel(
                    "GPUs with errors",
                    "short",
                    (Query(f"count(gpu:last_xid:code{_ON} > 0) or vector(0)"),),
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
                _of_gpus("Use", "percentunit", "gpu:utilization:ratio", maximum=1),
                _of_gpus("Memory used", "bytes", "gpu:memory_used:bytes"),
                Panel(
                    "Memory used, as part of it",
                    "percentunit",
                    (
                        Query(
                            (
                                f"gpu:memory_used:bytes{_ON} / (gpu:memory_used:bytes{_ON} + "
                                f"gpu:memory_free:bytes{_ON})"
                            ),
                            _NAME,
                        ),
                    ),
                    maximum=1,
                    needs=_GPU,
                ),
                _of_gpus("NVLink", "Bps", "gpu:nvlink:bytes_per_second", needs="GPUs with NVLink"),
                Panel(
                    "Allocated and used",
                    "short",
                    (
                        Query('sum(slurm_node_gpus_allocated{node=~"$node"})', "allocated"),
                        Query(f"sum(gpu:utilization:ratio{_ON})", "used"),
                    ),
                    meaning="How many GPUs jobs have, and how many the use of all of them makes.",
                    needs=_GPU,
                ),
                Panel(
                    "GPUs of nodes",
                    "short",
                    (Query('sum by (type) (slurm_node_gpus{node=~"$node"})', "{{type}}"),),
                    stacked=True,
                ),
            ),
        ),
        Row(
            "Jobs",
            (
                Panel(
                    "Who has which GPU",
                    "short",
                    tuple(
                        Query(f"{_WHOSE} * on (instance, gpu) group_left () {metric}")
                        for metric in ("gpu:utilization:ratio", "gpu:memory_used:bytes", "gpu:power:watts")
                    ),
                    kind="table",
                    width=24,
                    meaning="Of the largest jobs that run (slurm_metrics_named_jobs says how many).",
                    columns={
                        "instance": ("Node", ""),
                        "gpu": ("GPU", ""),
                        "job_id": ("Job", ""),
                        "user": ("User", ""),
                        "Value #A": ("Use", "percentunit"),
                        "Value #B": ("Memory used", "bytes"),
                        "Value #C": ("Power", "watt"),
                    },
                    link=("deploy-jobs", "job_id"),
                    link_label="Job",
                    needs=_JOBS,
                ),
            ),
        ),
        Row(
            "Power, heat, clocks",
            (
                _of_gpus("Power", "watt", "gpu:power:watts"),
                Panel(
                    "Power, as part of its limit",
                    "percentunit",
                    (Query(f"gpu:power:watts{_ON} / gpu:power_limit:watts{_ON}", _NAME),),
                    maximum=1.1,
                    needs=_GPU,
                ),
                _of_gpus("Temperature", "celsius", "gpu:temperature:celsius"),
                _of_gpus("Clock", "hertz", "gpu:sm_clock:hertz"),
                _of_gpus("Memory clock", "hertz", "gpu:memory_clock:hertz"),
                _of_gpus(
                    "Slowed down",
                    "short",
                    "gpu:hardware_throttled:bool",
                    "By heat or the power supply, not by the power limit.",
                    needs=_DCGM,
                ),
            ),
        ),
        Row(
            "Errors",
            (
                _of_gpus(
                    "Last Xid",
                    "none",
                    "gpu:last_xid:code",
                    "The number of the last error; 0 is none.",
                    needs=_DCGM,
                ),
                _of_gpus("Memory errors, not corrected", "short", "gpu:ecc_uncorrected:total", needs=_DCGM),
                _of_gpus("Memory errors, corrected", "short", "gpu:ecc_corrected:total", needs=_DCGM),
                _of_gpus(
                    "Rows that could not be replaced", "short", "gpu:row_remap_failure:bool", needs=_DCGM
                ),
                _of_gpus("PCIe transfers repeated", "short", "gpu:pcie_replay:total", needs=_DCGM),
            ),
        ),
    ),
    (NODE,),
)

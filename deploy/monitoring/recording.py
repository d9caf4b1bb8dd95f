"""Recording rules: GPUs by one set of names, whichever exporter reports them, and their jobs; by host.

Fields of DCGM are named as in NVIDIA's DCGM API reference, as dcgm-exporter serves them; those of
nvitop-exporter end with their unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from deploy.monitoring.queries import LOCAL

_KEYS = "instance, gpu"
_MIB = 1 << 20


@dataclass(frozen=True)
class Recording:
    """A series that Prometheus computes from others."""

    record: str
    expr: str
    unit: str
    """What it is counted in, as Grafana calls it."""


def _nvitop(metric: str) -> str:
    """What nvitop calls index is called gpu elsewhere; what a GPU cannot tell is NaN there, nothing here."""
    return f'label_replace({metric} >= 0, "gpu", "$1", "index", "(.+)")'


def _either(dcgm: str, nvitop: str, factor: str = "", *, nvitop_factor: str | None = None) -> str:
    """The number of one exporter, or of the other where the first does not tell it."""
    other = factor if nvitop_factor is None else nvitop_factor
    return f"max by ({_KEYS}) ({dcgm}){factor} or max by ({_KEYS}) ({_nvitop(nvitop)}){other}"


def _bit(value: int) -> str:
    """Whether a bit is set in the reasons why clocks are held down (NVML's nvmlClocksEventReasons)."""
    return f"floor(DCGM_FI_DEV_CLOCKS_EVENT_REASONS / {value}) % 2"


_SLOWDOWN = " + ".join(_bit(value) for value in (8, 32, 64, 128))

GPU: Sequence[Recording] = (
    Recording(
        "gpu:utilization:ratio",
        _either("DCGM_FI_DEV_GPU_UTIL", "gpu_utilization_Percentage", " / 100"),
        "percentunit",
    ),
    Recording(
        "gpu:memory_used:bytes", _either("DCGM_FI_DEV_FB_USED", "gpu_memory_used_MiB", f" * {_MIB}"), "bytes"
    ),
    Recording(
        "gpu:memory_free:bytes", _either("DCGM_FI_DEV_FB_FREE", "gpu_memory_free_MiB", f" * {_MIB}"), "bytes"
    ),
    Recording("gpu:power:watts", _either("DCGM_FI_DEV_POWER_USAGE", "gpu_power_usage_W"), "watt"),
    Recording("gpu:power_limit:watts", _either("DCGM_FI_DEV_POWER_MGMT_LIMIT", "gpu_power_limit_W"), "watt"),
    Recording("gpu:temperature:celsius", _either("DCGM_FI_DEV_GPU_TEMP", "gpu_temperature_C"), "celsius"),
    Recording(
        "gpu:sm_clock:hertz", _either("DCGM_FI_DEV_SM_CLOCK", "gpu_clock_sm_MHz", " * 1000000"), "hertz"
    ),
    Recording(
        "gpu:memory_clock:hertz",
        _either("DCGM_FI_DEV_MEM_CLOCK", "gpu_clock_memory_MHz", " * 1000000"),
        "hertz",
    ),
    Recording(
        "gpu:nvlink:bytes_per_second",
        # DCGM tells megabytes a second, whatever dcgm-exporter's own list of counters says; nvitop MiB, both
        # ways apart.
        f"max by ({_KEYS}) (DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL) * 1000000 or "
        f"max by ({_KEYS}) ({_nvitop('gpu_nvlink_total_tx_throughput_MiBps')}"
        f" + {_nvitop('gpu_nvlink_total_rx_throughput_MiBps')}) * {_MIB}",
        "Bps",
    ),
    Recording("gpu:last_xid:code", f"max by ({_KEYS}) (DCGM_FI_DEV_XID_ERRORS)", "none"),
    Recording(
        # What DCGM knows is the last one, whenever that was. Its exporter counts all of the last five
        # minutes; one that was started with an earlier list of fields does not.
        "gpu:xid:count",
        f'max by ({_KEYS}, xid) (DCGM_EXP_XID_ERRORS_COUNT{{xid!~"0?"}}) or '
        f'count_values by ({_KEYS}) ("xid", gpu:last_xid:code > 0 and changes(gpu:last_xid:code[5m]) > 0)',
        "short",
    ),
    Recording("gpu:ecc_uncorrected:total", f"max by ({_KEYS}) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL)", "short"),
    Recording("gpu:ecc_corrected:total", f"max by ({_KEYS}) (DCGM_FI_DEV_ECC_SBE_VOL_TOTAL)", "short"),
    Recording("gpu:row_remap_failure:bool", f"max by ({_KEYS}) (DCGM_FI_DEV_ROW_REMAP_FAILURE)", "bool"),
    Recording("gpu:pcie_replay:total", f"max by ({_KEYS}) (DCGM_FI_DEV_PCIE_REPLAY_COUNTER)", "short"),
    Recording("gpu:hardware_throttled:bool", f"max by ({_KEYS}) ({_SLOWDOWN})", "short"),
)

GPU_JOBS: Sequence[Recording] = (
    Recording(
        # NVIDIA's exporter has a job's own number; here a task of an array is called as Slurm's tools do.
        "gpu:job:info",
        f"max by ({_KEYS}, job_id) ("
        'label_replace(DCGM_FI_DEV_GPU_UTIL{hpc_job!=""}, "number", "$1", "hpc_job", "(.+)") * 0'
        " + on (number) group_left (job_id) max by (number, job_id) (slurm_job_info))",
        "none",
    ),
)

SLURM: Sequence[Recording] = (
    Recording(
        "instance:slurm_gpus:count",
        'sum by (instance) (label_replace(slurm_node_gpus, "instance", "$1", "node", "(.+)"))',
        "short",
    ),
    Recording(
        "instance:slurm_gpus_allocated:count",
        'sum by (instance) (label_replace(slurm_node_gpus_allocated, "instance", "$1", "node", "(.+)"))',
        "short",
    ),
)

NODE: Sequence[Recording] = (
    Recording(
        "instance:cpu_used:ratio",
        'clamp_min(1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])), 0)',
        "percentunit",
    ),
    Recording(
        "instance:memory_used:ratio",
        "1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes",
        "percentunit",
    ),
)


def _once(record: str, metric: str, condition: str, keys: str) -> Recording:
    """What was so once: each round remembers the one before, over an hour without Prometheus, too.

    It is known as long as its host is watched, however long that is off.
    """
    return Recording(
        record,
        f"max by ({keys}) ({metric} {condition}) or last_over_time({record}[1h]) and on (instance) up",
        "none",
    )


MEMORY: Sequence[Recording] = (
    _once(
        *("filesystem:writable:once", f"node_filesystem_readonly{{{LOCAL}}}", "== 0"),
        "instance, device, mountpoint",
    ),
    _once("infiniband:active:once", "node_infiniband_state_id", "== 4", "instance, device, port"),
)

GROUPS = {
    "gpu_names": GPU,
    "jobs_of_gpus": GPU_JOBS,
    "slurm_by_instance": SLURM,
    "hosts_by_instance": NODE,
    "as_it_was": MEMORY,
}

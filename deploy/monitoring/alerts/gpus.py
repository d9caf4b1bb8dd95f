"""GPUs: missing, ill, hot, throttled, and driver versions that do not go together."""

from deploy.monitoring.alert import Alert, Chapter

_GPU = 'instance="node1",job="gpu",gpu="0"'
_LABELS = {"instance": "node1", "gpu": "0"}
# A divided GPU is several to Slurm, of types such as 1g.10gb.
_WHOLE = 'slurm_node_gpus{type!~".*[0-9]g[.].*"}'
_WHOLE_GPUS = f'sum by (instance) (label_replace({_WHOLE}, "instance", "$1", "node", "(.+)"))'
_DCGM = "DCGM_FI_DEV_"
# For which NVIDIA's catalog of Xid errors says to reset the GPU or the node, and those of its memory.
_OF_THE_GPU = "46|48|62|63|64|74|79|92|94|95|109|110|119|120|136|140|143|155|156|158|160"


def _reported(which: str) -> str:
    """Xid errors of the last hour; none after a boot, when DCGM knows of none any more."""
    return f"max_over_time(gpu:xid:count{{xid{which}}}[1h]) > 0 and on (instance, gpu) gpu:last_xid:code > 0"


GPUS = Chapter(
    "gpus",
    "GPUs",
    (
        Alert(
            "GpuMissing",
            "critical",
            "{{ $labels.instance }} shows {{ $value }} GPUs fewer than Slurm knows of it",
            f"{_WHOLE_GPUS} - on (instance) (count by (instance) (gpu:utilization:ratio)"
            ' or sum by (instance) (up{job="gpu"}) * 0) > 0',
            10,
            "The driver shows fewer GPUs than slurm.conf says: one has fallen off the bus.",
            "The kernel's messages (Xid 79). Only a reboot, or a power cycle, brings it back.",
            (
                "ssh HOST nvidia-smi --list-gpus",
                "ssh HOST sudo dmesg | grep -i -e xid -e nvrm",
                "ssh HOST sudo node_health --show",
            ),
            {
                'slurm_node_gpus{instance="ctl1",node="node1",type="a100"}': "2x60",
                f"{_DCGM}GPU_UTIL{{{_GPU}}}": "0x60",
                'up{instance="node1",job="gpu"}': "1x60",
            },
            {
                'slurm_node_gpus{instance="ctl1",node="node1",type="a100"}': "1x60",
                'slurm_node_gpus{instance="ctl1",node="node1",type="a100_1g.10gb"}': "7x60",
                f"{_DCGM}GPU_UTIL{{{_GPU}}}": "0x60",
                'up{instance="node1",job="gpu"}': "1x60",
            },
            {"instance": "node1"},
            repair="node",
        ),
        Alert(
            "GpuXid",
            "warning",
            "GPU {{ $labels.gpu }} of {{ $labels.instance }} reported Xid {{ $labels.xid }}",
            _reported(f'!~"{_OF_THE_GPU}"'),
            0,
            (
                "The driver reported an error within the last hour that by itself asks for no reset: Xid 13, "
                "31, 43 and 45 are usually a job's own mistake; of others (144 to 150: NVLink of Blackwell) "
                "NVIDIA's catalog says more."
            ),
            "What NVIDIA's list of Xid errors says of the number, and whose job it was.",
            ("ssh HOST sudo dmesg | grep -i xid", "ssh HOST nvidia-smi --query", "ssh HOST dcgmi diag -r 2"),
            {
                f"{_DCGM}XID_ERRORS{{{_GPU}}}": "0x20 43x60",
                f'DCGM_EXP_XID_ERRORS_COUNT{{{_GPU},xid="43"}}': "_x21 1x5",
            },
            {
                f"{_DCGM}XID_ERRORS{{{_GPU}}}": "0x20 79x60",
                f'DCGM_EXP_XID_ERRORS_COUNT{{{_GPU},xid="79"}}': "_x21 1x5",
            },
            {**_LABELS, "xid": "43"},
        ),
        Alert(
            "GpuXidOfItsOwn",
            "critical",
            "GPU {{ $labels.gpu }} of {{ $labels.instance }} reported Xid {{ $labels.xid }}: its own fault",
            _reported(f'=~"{_OF_THE_GPU}"'),
            0,
            (
                "The driver reported an error of the GPU itself within the last hour: of its memory (Xid 48, "
                "63, 64, 92, 94, 95, 140), of NVLink (74), of its firmware (119, 120), it is gone (79), or "
                "another one for which NVIDIA says to reset the GPU or the node."
            ),
            "What NVIDIA's list of Xid errors says of the number. A reset of the GPU is what mostly helps.",
            (
                "ssh HOST sudo dmesg | grep -i xid",
                "deploy node repair INVENTORY HOST",
                "ssh HOST dcgmi diag -r 2",
            ),
            # By the last one alone, too, as an exporter tells it that was not started since.
            {f"{_DCGM}XID_ERRORS{{{_GPU}}}": "0x20 79x60"},
            {
                f"{_DCGM}XID_ERRORS{{{_GPU}}}": "0x20 31x60",
                f'DCGM_EXP_XID_ERRORS_COUNT{{{_GPU},xid="31"}}': "_x21 1x5",
            },
            {**_LABELS, "xid": "79"},
            repair="gpu",
        ),
        Alert(
            "GpuMemoryErrors",
            "critical",
            "GPU {{ $labels.gpu }} of {{ $labels.instance }} had memory errors that could not be corrected",
            "increase(gpu:ecc_uncorrected:total[1h]) > 0",
            0,
            (
                "The GPU's memory returned wrong data and could not correct it. The job that ran there "
                "has failed."
            ),
            "Whether rows were remapped, which needs a reset of the GPU; drain the node for that.",
            (
                "ssh HOST nvidia-smi --query --display=ECC,ROW_REMAPPER",
                "deploy node repair INVENTORY HOST",
            ),
            {f"{_DCGM}ECC_DBE_VOL_TOTAL{{{_GPU}}}": "0x10 2x60"},
            {f"{_DCGM}ECC_DBE_VOL_TOTAL{{{_GPU}}}": "2x70"},
            _LABELS,
            repair="gpu",
        ),
        Alert(
            "GpuRowRemapFailed",
            "critical",
            "GPU {{ $labels.gpu }} of {{ $labels.instance }} cannot replace a bad row of its memory",
            "gpu:row_remap_failure:bool > 0",
            0,
            "The GPU has no spare rows left. It has to be replaced.",
            "Drain the node and ask its vendor for another.",
            (
                "sudo scontrol update NodeName=HOST State=DRAIN Reason='GPU memory'",
                "ssh HOST nvidia-smi --query --display=ROW_REMAPPER",
            ),
            {f"{_DCGM}ROW_REMAP_FAILURE{{{_GPU}}}": "1x60"},
            {f"{_DCGM}ROW_REMAP_FAILURE{{{_GPU}}}": "0x60"},
            _LABELS,
            repair="vendor",
        ),
        Alert(
            "GpuHot",
            "warning",
            "GPU {{ $labels.gpu }} of {{ $labels.instance }} has {{ $value }} degrees Celsius",
            "gpu:temperature:celsius >= 85",
            10,
            "A GPU is near the temperature at which it slows down.",
            "Its neighbours in the machine, then fans and air.",
            ("ssh HOST nvidia-smi --query --display=TEMPERATURE", "ssh HOST sudo ipmitool sdr type fan"),
            {f"{_DCGM}GPU_TEMP{{{_GPU}}}": "91x60"},
            {f"{_DCGM}GPU_TEMP{{{_GPU}}}": "64x60"},
            _LABELS,
        ),
        Alert(
            "GpuThrottled",
            "warning",
            "GPU {{ $labels.gpu }} of {{ $labels.instance }} is slowed down by heat or its power supply",
            "gpu:hardware_throttled:bool > 0",
            10,
            (
                "The GPU slows down because of heat or because the power supply asks it to, not because "
                "of the power limit."
            ),
            "Temperature and power of this GPU and its neighbours.",
            (
                "ssh HOST nvidia-smi --query --display=PERFORMANCE",
                "ssh HOST sudo ipmitool sdr type 'power supply'",
            ),
            # 64 is the hardware's thermal slowdown; 4 is the power limit, which is no fault.
            {f"{_DCGM}CLOCKS_EVENT_REASONS{{{_GPU}}}": "68x60"},
            {f"{_DCGM}CLOCKS_EVENT_REASONS{{{_GPU}}}": "4x60"},
            _LABELS,
        ),
        Alert(
            "GpuPcieReplays",
            "warning",
            "GPU {{ $labels.gpu }} of {{ $labels.instance }} repeats transfers over PCIe",
            "increase(gpu:pcie_replay:total[1h]) > 100",
            0,
            "Transfers between CPU and GPU had to be repeated: a riser, a cable or the seat of the card.",
            "Link width and speed against those of its neighbours.",
            (
                "ssh HOST nvidia-smi --format=csv --query-gpu=pcie.link.gen.current,pcie.link.width.current",
                "ssh HOST sudo lspci -vv -d 10de: | grep LnkSta",
            ),
            {f"{_DCGM}PCIE_REPLAY_COUNTER{{{_GPU}}}": "0+10x60"},
            {f"{_DCGM}PCIE_REPLAY_COUNTER{{{_GPU}}}": "40x60"},
            _LABELS,
        ),
        Alert(
            "GpuAllocatedButIdle",
            "info",
            "All GPUs of {{ $labels.instance }} have been allocated and idle for two hours",
            "max by (instance) (max_over_time(gpu:utilization:ratio[2h])) < 0.01"
            " and on (instance) instance:slurm_gpus_allocated:count > 0"
            " and on (instance) instance:slurm_gpus_allocated:count"
            " == on (instance) instance:slurm_gpus:count",
            120,
            "Jobs hold GPUs that others wait for, and do nothing with them.",
            "Whose job it is; a program that cannot see its GPU is the usual cause.",
            ("squeue --nodelist HOST", "ssh HOST nvidia-smi"),
            {
                'slurm_node_gpus{instance="ctl1",node="node1",type="a100"}': "1x300",
                'slurm_node_gpus_allocated{instance="ctl1",node="node1",type="a100"}': "1x300",
                f"{_DCGM}GPU_UTIL{{{_GPU}}}": "0x300",
            },
            {
                'slurm_node_gpus{instance="ctl1",node="node1",type="a100"}': "1x300",
                'slurm_node_gpus_allocated{instance="ctl1",node="node1",type="a100"}': "1x300",
                f"{_DCGM}GPU_UTIL{{{_GPU}}}": "0x50 80x50 0x50 80x50 0x50 80x50",
            },
            {"instance": "node1"},
            after=250,
        ),
        Alert(
            "NvidiaDriverMismatch",
            "critical",
            (
                "The NVIDIA driver in the kernel of {{ $labels.instance }} is {{ $labels.module }}, its "
                "library {{ $labels.library }}"
            ),
            "deploy_nvidia_driver_match == 0",
            10,
            (
                "The driver's library was upgraded and the kernel still runs the old module: no new "
                "process can use a GPU."
            ),
            "Drain and reboot the node.",
            ("ssh HOST cat /proc/driver/nvidia/version", "sudo scontrol reboot ASAP nextstate=RESUME HOST"),
            {'deploy_nvidia_driver_match{instance="node1",module="550.1",library="550.2"}': "0x60"},
            {'deploy_nvidia_driver_match{instance="node1",module="550.2",library="550.2"}': "1x60"},
            {"instance": "node1", "library": "550.2"},
            repair="node",
        ),
        Alert(
            "NvidiaDriverVersionsDiffer",
            "warning",
            "{{ $value }} different NVIDIA drivers are in use",
            "count(count by (module) (deploy_nvidia_driver_match)) > 1",
            60,
            "Not all nodes have the same driver. Jobs behave differently from node to node.",
            "Which nodes are behind; an upgrade that was limited to some hosts is the usual cause.",
            ("deploy status INVENTORY", "deploy cluster INVENTORY"),
            {
                'deploy_nvidia_driver_match{instance="node1",module="550.1",library="550.1"}': "1x120",
                'deploy_nvidia_driver_match{instance="node2",module="550.2",library="550.2"}': "1x120",
            },
            {
                'deploy_nvidia_driver_match{instance="node1",module="550.1",library="550.1"}': "1x120",
                'deploy_nvidia_driver_match{instance="node2",module="550.1",library="550.1"}': "1x120",
            },
            {},
            after=90,
        ),
    ),
)

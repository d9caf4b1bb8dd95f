"""Hardware that is declared or kept and cannot be."""

from tests.unit.site.bad.site import NODES, BadSite, variables

SITES = (
    variables(
        "a GPU with an empty type",
        "slurmd_hardware: {gpus: [{type: '', count: 1}]}\n",
        "group_vars/slurm-node.yml:1: a GPU is declared without its type [gpu-without-type]",
        file=NODES,
    ),
    variables(
        "a GPU without a type",
        "slurmd_hardware: {gpus: [{count: 1}]}\n",
        "group_vars/slurm-node.yml:1: slurmd_hardware.gpus[0] lacks the key 'type' [invalid-value]",
        file=NODES,
    ),
    variables(
        "a GPU type with a space",
        "slurmd_hardware: {gpus: [{type: A100 80GB, count: 1}]}\n",
        (
            "group_vars/slurm-node.yml:1: slurmd_hardware.gpus[0].type is 'A100 80GB', not a GPU's "
            "type: letters, digits, _ . and - [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "no CPUs",
        "slurmd_hardware: {cpus: 0}\n",
        ("group_vars/slurm-node.yml:1: slurmd_hardware.cpus is 0, not a number from 1 on [invalid-value]"),
        file=NODES,
    ),
    variables(
        "fewer GPUs than none",
        "slurmd_hardware: {gpus: [{type: a100, count: -1}]}\n",
        (
            "group_vars/slurm-node.yml:1: slurmd_hardware.gpus[0].count is -1, not a number from 1 "
            "on [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "memory with a unit",
        "slurmd_hardware: {memory_mb: 512G}\n",
        (
            "group_vars/slurm-node.yml:1: slurmd_hardware.memory_mb is '512G', not a number from 1 "
            "to 4294967295 [invalid-value]"
        ),
        file=NODES,
    ),
    variables(
        "CPUs that are not sockets x cores x threads",
        "slurmd_hardware: {cpus: 48, sockets: 2, cores_per_socket: 16, threads_per_core: 2}\n",
        (
            "group_vars/slurm-node.yml:1: cpus 48 is not 2 sockets x 16 cores x 2 threads, so Slurm "
            "would set the node's CPUs itself [hardware-contradiction]"
        ),
        file=NODES,
    ),
    variables(
        "more device files than GPUs",
        "slurmd_hardware: {gpus: [{type: a100, count: 2, files: '/dev/nvidia[0-3]'}]}\n",
        ("group_vars/slurm-node.yml:1: GPUs of the type a100: count is 2, but files names 4 [gpu-files]"),
        file=NODES,
    ),
    variables(
        "one GPU type twice",
        "slurmd_hardware: {gpus: [{type: a100, count: 2}, {type: a100, count: 2}]}\n",
        "group_vars/slurm-node.yml:1: GPUs of the type a100 are listed 2 times [duplicate-gpu-type]",
        file=NODES,
    ),
    variables(
        "a misspelled key of hardware",
        "slurmd_hardware: {cpu: 4}\n",
        "group_vars/slurm-node.yml:1: slurmd_hardware has no key 'cpu' [invalid-value]",
        file=NODES,
    ),
    variables(
        "hardware.yml that is not YAML",
        "node1: {cpus: 4\nnode2: {}\n",
        "hardware.yml:2: this file cannot be read: it is not YAML [hardware-invalid]",
        file="hardware.yml",
    ),
    variables(
        "hardware.yml with a key of its own",
        "node1: {cpu: 4}\n",
        (
            "hardware.yml: node1: known keys are cpus, sockets, cores_per_socket, threads_per_core, "
            "memory_mb, tmp_disk_mb, gpus [hardware-invalid]"
        ),
        file="hardware.yml",
    ),
    variables(
        "hardware.yml with text for a number",
        "node1: {memory_mb: much}\n",
        "hardware.yml: node1: memory_mb is 'much', not a number from 1 to 4294967295 [hardware-invalid]",
        file="hardware.yml",
    ),
    variables(
        "hardware.yml that is a list",
        "- node1\n",
        ("hardware.yml: this file cannot be read: it is not a mapping of names to values [hardware-invalid]"),
        file="hardware.yml",
    ),
    BadSite(
        "hardware.yml that contradicts itself",
        expected=(
            (
                "hardware.yml: cpus 6 is not 2 sockets x 4 cores x 1 threads, so Slurm would set the "
                "node's CPUs itself [hardware-contradiction]"
            ),
        ),
        files={
            NODES: "",
            "hardware.yml": "node1: {cpus: 6, sockets: 2, cores_per_socket: 4, threads_per_core: 1}\n",
        },
    ),
    variables(
        "MIG on a GPU that is not there",
        "mig_layout: [{gpus: [1, 2], devices: [7g.80gb]}]\n",
        (
            "group_vars/all.yml:1: mig_layout divides GPU 2 of a node that has 2; they are numbered from 0 "
            "on [mig-gpu-not-there]"
        ),
    ),
    variables(
        "MIG twice on one GPU",
        "mig_layout: [{devices: [7g.80gb], gpus: [0]}, {gpus: [0], devices: [3g.9gb]}]\n",
        "group_vars/all.yml:1: mig_layout divides GPU 0 more than once [mig-gpu-twice]",
    ),
    variables(
        "MIG and MPS",
        "mig_layout: [{devices: [7g.80gb]}]\nslurmd_gpu_mps: true\n",
        (
            "group_vars/all.yml:2: GPUs that are divided (mig_layout) have shares, too, and Slurm shares "
            "whole GPUs [shards-of-instances]"
        ),
    ),
    BadSite(
        "shares of GPUs that one program has",
        expected=(
            (
                "host_vars/node1.yml:2: jobs on node1 may have shares of a GPU (slurmd_gpu_shards), and only "
                "the first program on it would run (gpu_modes_compute) [shares-of-exclusive-gpus]"
            ),
        ),
        files={"host_vars/node1.yml": "slurmd_gpu_shards: 2\ngpu_modes_compute: exclusive_process\n"},
    ),
    variables(
        "a frequency that nothing sets",
        "slurmctld_gpu_frequency: medium,memory=high\n",
        (
            "group_vars/all.yml:1: slurmctld_gpu_frequency is set, and Slurm sets frequencies only of GPUs "
            "that it finds by NVML [gpu-frequency-without-nvml]"
        ),
    ),
    variables(
        "a frequency that is none",
        "slurmctld_gpu_frequency: fast\nslurmctld_gres_autodetect: nvml\n",
        (
            "group_vars/all.yml:1: slurmctld_gpu_frequency is 'fast', not a frequency in MHz, or low, "
            "medium, high or highm1, as in medium,memory=high [invalid-value]"
        ),
    ),
    variables(
        "MIG and shares",
        "mig_layout: [{devices: [7g.80gb]}]\nslurmd_gpu_shards: 2\n",
        (
            "group_vars/all.yml:2: GPUs that are divided (mig_layout) have shares, too, and Slurm shares "
            "whole GPUs [shards-of-instances]"
        ),
    ),
)

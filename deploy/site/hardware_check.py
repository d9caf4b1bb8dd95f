"""The hardware that is declared or was discovered: counts that contradict each other, GPUs without a type."""

from collections.abc import Iterator, Mapping
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from deploy.errors import DeployError, Finding
from deploy.site.hardware import FILE_NAME, VARIABLE, hardware_of, read_contract
from deploy.site.inventory import Host, Site
from deploy.site.origin import shown
from deploy.site.values import faults, opaque

_SHARING = ("slurmd_gpu_shards", "slurmd_gpu_mps")
_FREQUENCY = "slurmctld_gpu_frequency"


def check_hardware(site: Site) -> Iterator[Finding]:
    """What cannot be true of a node, whether the inventory or hardware.yml says it."""
    try:
        contract = read_contract(site)
    except DeployError as problem:
        yield from problem.findings
        contract = {}
    file = shown(str(site.directory / FILE_NAME))
    sound: dict[str, Mapping[str, Any]] = {}
    for name, entry in contract.items():
        wrong = faults(VARIABLE, entry)
        sound |= {} if wrong else {name: entry}
        for message, hint in wrong:
            yield Finding(file, "hardware-invalid", f"{name}: {message.removeprefix(f'{VARIABLE}.')}", hint)
    for node in site.nodes:
        own = node.variables.get(VARIABLE)
        if not own or (not opaque(own) and not faults(VARIABLE, own)):
            where = node.where(VARIABLE) if own else file
            yield from _contradictions(where, hardware_of(node, sound))
            yield from _undivided(node, hardware_of(node, sound))
        yield from _shared_by_one(node)
    yield from _frequency_by_nobody(site)


def _shared_by_one(node: Host) -> Iterator[Finding]:
    if node.value("slurmd_gpu_shards") and node.value("gpu_modes_compute") == "exclusive_process":
        yield Finding(
            node.where("gpu_modes_compute"),
            "shares-of-exclusive-gpus",
            f"jobs on {node.name} may have shares of a GPU (slurmd_gpu_shards), and only the first program "
            "on it would run (gpu_modes_compute)",
            "keep one of the two; slurmd_gpu_mps shares such GPUs",
        )


def _frequency_by_nobody(site: Site) -> Iterator[Finding]:
    """Slurm sets a GPU's frequency by the library by which it finds it, and by no other way."""
    for master in site.controllers:
        if master.value(_FREQUENCY) and master.value("slurmctld_gres_autodetect") != "nvml":
            yield Finding(
                master.where(_FREQUENCY),
                "gpu-frequency-without-nvml",
                f"{_FREQUENCY} is set, and Slurm sets frequencies only of GPUs that it finds by NVML",
                "set slurmctld_gres_autodetect: nvml, or leave the frequency out",
            )
            return


def _contradictions(where: str, hardware: Mapping[str, Any]) -> Iterator[Finding]:
    sizes = [
        int(hardware[key]) for key in ("sockets", "cores_per_socket", "threads_per_core") if key in hardware
    ]
    if "cpus" in hardware and len(sizes) == 3:  # noqa: PLR2004
        sockets, cores, threads = sizes
        if int(hardware["cpus"]) not in {sockets, sockets * cores, sockets * cores * threads}:
            yield Finding(
                where,
                "hardware-contradiction",
                f"cpus {hardware['cpus']} is not {sockets} sockets x {cores} cores x {threads} threads, "
                "so Slurm would set the node's CPUs itself",
                "write cpus alone, or all four so that they agree",
            )
    for gpu in hardware.get("gpus", []):
        yield from _gpu_faults(where, gpu)
    types = [str(gpu.get("type")).lower() for gpu in hardware.get("gpus", []) if not gpu.get("files")]
    for kind in sorted({kind for kind in types if types.count(kind) > 1}):
        yield Finding(
            where,
            "duplicate-gpu-type",
            f"GPUs of the type {kind} are listed {types.count(kind)} times",
            "write them once, with their whole count",
        )


def _undivided(node: Host, hardware: Mapping[str, Any]) -> Iterator[Finding]:
    """GPUs that shall be divided and are not in the node."""
    layout = node.variables.get("mig_layout")
    if not layout or opaque(layout) or faults("mig_layout", layout) or "gpus" not in hardware:
        return
    count = sum(int(gpu["count"]) for gpu in hardware["gpus"])
    named = [int(index) for entry in layout for index in entry.get("gpus") or []]
    missing = sorted({index for index in named if index >= count})
    if missing or not count:
        yield Finding(
            node.where("mig_layout"),
            "mig-gpu-not-there",
            f"mig_layout divides GPU {', '.join(map(str, missing)) or 0} of a node that has {count}; they "
            "are numbered from 0 on",
            "correct the numbers, or the gpus of slurmd_hardware",
        )
    if shared := next(filter(node.value, _SHARING), None):
        yield Finding(
            node.where(shared),
            "shards-of-instances",
            "GPUs that are divided (mig_layout) have shares, too, and Slurm shares whole GPUs",
            f"keep one of {shared} and mig_layout",
        )
    twice = sorted({index for index in named if named.count(index) > 1})
    if twice:
        yield Finding(
            node.where("mig_layout"),
            "mig-gpu-twice",
            f"mig_layout divides GPU {', '.join(map(str, twice))} more than once",
            "write each GPU in one entry, with all its instances",
        )


def _gpu_faults(where: str, gpu: Mapping[str, Any]) -> Iterator[Finding]:
    if not str(gpu.get("type", "")).strip():
        yield Finding(
            where,
            "gpu-without-type",
            "a GPU is declared without its type",
            f"write for example: {VARIABLE}: {{gpus: [{{type: a100, count: 4}}]}}",
        )
    files = gpu.get("files")
    if files:
        number = _number_of(str(files))
        if number != int(gpu["count"]):
            yield Finding(
                where,
                "gpu-files",
                f"GPUs of the type {gpu.get('type')}: count is {gpu['count']}, but files names {number}",
                f"write for example: files: /dev/nvidia[0-{max(int(gpu['count']) - 1, 1)}]",
            )


def _number_of(files: str) -> int:
    try:
        return len(NodeSet(files, resolver=RESOLVER_NOGROUP))
    except (NodeSetException, ValueError):
        return 0

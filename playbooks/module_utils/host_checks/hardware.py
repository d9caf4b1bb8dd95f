"""Whether a compute node has what its hardware contract says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.host_checks.finding import error, warning
from ansible.module_utils.node_hardware import (
    driven_gpus,
    name_in_slurm,
    read_hardware,
    shortfalls,
    type_by_name,
)
from ansible.module_utils.nvidia_devices import read_devices


def check_hardware(
    contract: Mapping[str, Any],
    run: Callable[[list[str]], str],
    *,
    installs_driver: bool,
    by_name: Sequence[str] | None,
) -> Iterator[dict[str, str]]:
    """Fewer CPUs or GPUs, or less memory, than the contract says; ``run`` gives a command's output.

    Where this run brings the driver, GPUs are counted on the PCI bus. ``by_name`` are the types by which
    Slurm looks for GPUs; None where it is told their device files.
    """
    found = read_hardware(run)
    if installs_driver and "gpus" not in found:
        waiting = sum(device.is_gpu for device in read_devices(Path("/sys")))
        found["gpus"] = [{"type": "gpu", "count": waiting}]
    if by_name is None:
        yield from mixed_up(contract.get("gpus") or [], found.get("gpus") or [])
    else:
        yield from judge_names(by_name, [model for _, model in driven_gpus(Path("/proc"))])
    yield from judge(contract, found)


def judge(contract: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """What is less than the contract says."""
    accept = "repair the node, or accept the loss in slurmd_hardware or hardware.yml beside the inventory"
    for shortfall in shortfalls(dict(contract), dict(found)):
        if not shortfall.startswith("gpus"):
            yield error("hardware-below-contract", shortfall, accept)
        elif "gpus" in found:
            look = "on the node: nvidia-smi -L; ls /dev/nvidia*"
            yield error("hardware-below-contract", shortfall, f"{look}; {accept}")
        else:
            yield error(
                "gpu-driver-missing",
                f"{shortfall}: NVIDIA devices are on the PCI bus, and no driver is loaded",
                "install the NVIDIA driver on the node, or have deploy do it (nvidia_driver_source), "
                "then see: nvidia-smi",
            )


def judge_names(types: Sequence[str], models: Sequence[str]) -> Iterator[dict[str, str]]:
    """Types that are no part of a GPU's name: Slurm would find none and put the node out of service."""
    names = [name_in_slurm(model) for model in models]
    unfound = [kind for kind in types if not any(kind.lower() in name for name in names)]
    if not names or not unfound:
        return
    known = {kind.lower() for kind in types}
    right = dict.fromkeys(kind for model in models if (kind := type_by_name(model)) not in known)
    yield error(
        "gpu-type-not-found",
        f"Slurm finds GPUs by types that are a part of their names, and {', '.join(unfound)} is none of "
        f"{', '.join(dict.fromkeys(names))}: the node would be out of service",
        f"in slurmd_hardware, or in hardware.yml beside the inventory: type: {', '.join(right)}; or without "
        'MIG: slurmctld_gres_autodetect: "off"',
    )


def mixed_up(
    contract: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, str]]:
    """GPUs that Slurm takes for others, because the contract does not say which device files are whose.

    An entry that was discovered by an earlier version of deploy counts GPUs alone.
    """
    says_files = any(gpu.get("files") for gpu in contract)
    counts = [{gpu["type"]: int(gpu["count"]) for gpu in gpus} for gpus in (contract, shown)]
    if says_files or counts[0] != counts[1] or not all(gpu.get("files") for gpu in shown) or not shown:
        return
    places = ", ".join(f"{gpu['type']} is {gpu['files']}" for gpu in shown)
    entries = ", ".join(
        f"{{type: {gpu['type']}, count: {gpu['count']}, files: '{gpu['files']}'}}" for gpu in shown
    )
    yield warning(
        "gpu-types-mixed-up",
        f"{places}, and Slurm takes them one after the other from /dev/nvidia0 on: jobs get other GPUs than "
        "they ask for",
        f"write in slurmd_hardware or hardware.yml beside the inventory: gpus: [{entries}]",
    )

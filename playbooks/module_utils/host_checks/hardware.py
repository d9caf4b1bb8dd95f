"""Whether a compute node has what its hardware contract says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.host_checks.finding import error, warning
from ansible.module_utils.node_hardware import read_hardware, shortfalls
from ansible.module_utils.nvidia_devices import read_devices


def check_hardware(
    contract: Mapping[str, Any], run: Callable[[list[str]], str], *, installs_driver: bool
) -> Iterator[dict[str, str]]:
    """Fewer CPUs or GPUs, or less memory, than the contract says; ``run`` gives a command's output.

    Where this run brings the driver, GPUs are counted on the PCI bus.
    """
    found = read_hardware(run)
    if installs_driver and "gpus" not in found:
        waiting = sum(device.is_gpu for device in read_devices(Path("/sys")))
        found["gpus"] = [{"type": "gpu", "count": waiting}]
    yield from judge(contract, found)


def judge(contract: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """What is less than the contract says, and GPUs that are taken for others."""
    yield from _mixed_up(contract.get("gpus") or [], found.get("gpus") or [])
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


def _mixed_up(
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

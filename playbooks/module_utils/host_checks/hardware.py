"""Whether a compute node has what its hardware contract says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.host_checks.finding import error
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

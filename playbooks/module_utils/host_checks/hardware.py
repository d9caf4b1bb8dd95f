"""Whether a compute node has what its hardware contract says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ansible.module_utils.host_checks.finding import error
from ansible.module_utils.node_hardware import read_hardware, shortfalls


def check_hardware(contract: Mapping[str, Any], run: Callable[[list[str]], str]) -> Iterator[dict[str, str]]:
    """Fewer CPUs or GPUs, or less memory, than the contract says; ``run`` gives a command's output."""
    yield from judge(contract, read_hardware(run))


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
                "install the NVIDIA driver on the node, then see: nvidia-smi",
            )

#!/usr/bin/python
"""Ansible module: what a compute node has, and whether that is less than its contract."""

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.node_hardware import discover_hardware, disk_mb, read_hardware, shortfalls

DOCUMENTATION = r"""
module: slurm_hardware
short_description: What a compute node has, and whether that is less than its contract
description:
  - Reads CPUs, memory and NVIDIA GPUs of the machine; fails when it shows less than expected.
  - Where nothing is expected, GPUs without a driver are named by their numbers on the PCI bus.
options:
  expected:
    description: The hardware contract; keys that are left out are not compared with the machine.
    type: dict
    default: {}
  gpus_by_name:
    description: Whether Slurm finds the GPUs itself, by types that are a part of their names.
    type: bool
    default: false
  scratch:
    description: Where jobs' private directories are, for C(tmp_disk_mb). Left out, that is not read.
    type: path
author: [the maintainers of this project]
"""

RETURN = r"""
hardware:
  description: >-
    cpus, sockets, cores_per_socket, threads_per_core, memory_mb, tmp_disk_mb, gpus (list of type and count).
  type: dict
  returned: always
deploy_answer:
  description: C(hardware), the same, for C(deploy), which keeps it where the inventory is.
  type: dict
  returned: always
deploy_manages:
  description: What is recorded of the host, by kind.
  type: dict
  returned: always
"""


def main() -> None:
    """Read the machine, compare."""
    module = AnsibleModule(
        argument_spec={
            "expected": {"type": "dict", "default": {}},
            "gpus_by_name": {"type": "bool", "default": False},
            "scratch": {"type": "path"},
        },
        supports_check_mode=True,
    )
    expected = module.params["expected"]
    read = read_hardware if expected else discover_hardware
    hardware = read(
        lambda command: str(module.run_command(command, check_rc=True)[1]),
        by_name=module.params["gpus_by_name"],
    )
    if module.params["scratch"]:
        hardware["tmp_disk_mb"] = disk_mb(Path(module.params["scratch"]))
    less = shortfalls(expected, hardware)
    if less:
        module.fail_json(
            msg="this node shows less than its hardware contract: "
            + "; ".join(less)
            + ". Repair it, or accept the loss in slurmd_hardware or hardware.yml beside the inventory.",
            hardware=hardware,
        )
    module.exit_json(
        changed=False,
        hardware=hardware,
        deploy_answer={"hardware": hardware},
        deploy_manages={"hardware": ["cpus", "memory", "gpus"]},
    )


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: network cards reach the memory of NVIDIA GPUs, where a machine has both.

ansible-core has none for modules of the kernel; the record has to know that this one is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left

DOCUMENTATION = r"""
module: peer_memory
short_description: Network cards reach the memory of NVIDIA GPUs, where a machine has both
description:
  - Loads nvidia-peermem now and at every boot where an NVIDIA driver runs and there is an RDMA device;
    elsewhere nothing is done.
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: C(files) and C(modules), where there is something to manage.
  type: dict
  returned: always
"""

_ROOT = Path("/")
_FILE = Path("/etc/modules-load.d/deploy-nvidia-peermem.conf")
_TEXT = "# Made by deploy; changes made here are undone by the next run.\nnvidia-peermem\n"


def is_wanted(root: Path) -> bool:
    """Whether a driver runs here and a network card does RDMA."""
    devices = root / "sys/class/infiniband"
    has_card = devices.is_dir() and any(devices.iterdir())
    return has_card and (root / "proc/driver/nvidia/version").exists()


def is_loaded(root: Path) -> bool:
    """Whether the module is in the kernel."""
    return (root / "sys/module/nvidia_peermem").exists()


def main() -> None:
    """Look, load, and have it loaded at boot."""
    arguments: dict[str, Any] = {}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    if not is_wanted(_ROOT):
        module.exit_json(changed=False, deploy_manages={})
    loaded = is_loaded(_ROOT)
    if not loaded and not module.check_mode:
        code, out, err = module.run_command(["modprobe", "nvidia-peermem"])
        if code != 0:
            module.fail_json(
                msg=f"modprobe nvidia-peermem: {(out + err).strip()}; it is part of the driver, and "
                "wants the kernel's or DOCA's ib_core: see dmesg, and lsmod | grep ib_"
            )
    changed = keep(module, _FILE, _TEXT) or not loaded
    module.exit_json(changed=changed, deploy_manages={"files": left([_FILE]), "modules": ["nvidia_peermem"]})


if __name__ == "__main__":
    main()

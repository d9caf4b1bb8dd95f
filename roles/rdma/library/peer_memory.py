#!/usr/bin/python
"""Ansible module: network cards reach the memory of NVIDIA GPUs by nvidia-peermem, where that works.

ansible-core has none for modules of the kernel; the record has to know that this one is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left

DOCUMENTATION = r"""
module: peer_memory
short_description: Network cards reach the memory of NVIDIA GPUs by nvidia-peermem, where that works
description:
  - Loads nvidia-peermem now and at every boot where an NVIDIA driver runs, there is an RDMA device, and the
    RDMA drivers in the kernel take it, as those of DOCA and Ubuntu do; elsewhere what an earlier run left
    is taken away.
  - The RDMA drivers of the kernel itself do not take it. There the memory of GPUs is reached by DMA-BUF,
    which needs no module.
  - A module that does not load is no failure. Jobs run without it, and C(deploy_pending) says why.
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_pending:
  description: Why it is not loaded where it is wanted.
  type: list
  returned: always
deploy_manages:
  description: C(files) and C(modules), where there is something to manage.
  type: dict
  returned: always
"""

_FILE = Path("/etc/modules-load.d/deploy-nvidia-peermem.conf")
_TEXT = "# Made by deploy; changes made here are undone by the next run.\nnvidia-peermem\n"
_SYMBOL = "ib_register_peer_memory_client"
"""What the module calls. Without it in the kernel, it was built to answer EINVAL (nvidia-peermem.c)."""


def is_wanted(root: Path) -> bool:
    """Whether a driver runs here and a network card does RDMA, by kernel drivers that take the module."""
    devices = root / "sys/class/infiniband"
    has_card = devices.is_dir() and any(devices.iterdir())
    return has_card and (root / "proc/driver/nvidia/version").exists() and _takes_it(root)


def _takes_it(root: Path) -> bool:
    """Whether the kernel has the symbol; each line is an address, a type, a name and maybe a module."""
    with (root / "proc/kallsyms").open(encoding="ascii", errors="replace") as lines:
        return any(line.split()[2:3] == [_SYMBOL] for line in lines)


def is_loaded(root: Path) -> bool:
    """Whether the module is in the kernel."""
    return (root / "sys/module/nvidia_peermem").exists()


def main() -> None:
    """Look, load, and have it loaded at boot."""
    arguments: dict[str, Any] = {}
    bring(AnsibleModule(argument_spec=arguments, supports_check_mode=True), Path("/"))


def bring(module: AnsibleModule, root: Path) -> None:
    """The same for the file system below ``root``."""
    file = root / _FILE.relative_to("/")
    why = ""
    if is_wanted(root):
        was_loaded = is_loaded(root)
        if not was_loaded and not module.check_mode:
            why = _load(module)
        if not why:
            changed = keep(module, file, _TEXT) or not was_loaded
            manages = {"files": left([file]), "modules": ["nvidia_peermem"]}
            module.exit_json(changed=changed, deploy_pending=[], deploy_manages=manages)
    was_there = file.exists()
    if was_there and not module.check_mode:
        file.unlink()
    module.exit_json(
        changed=was_there,
        deploy_pending=[why] if why else [],
        deploy_manages={"files": left([file])} if was_there else {},
    )


def _load(module: AnsibleModule) -> str:
    """Nothing, or why the module is not loaded."""
    code, out, err = module.run_command(["modprobe", "nvidia-peermem"])
    if code == 0:
        return ""
    said = (out + err).strip()
    hint = (
        "it was built before those RDMA drivers were installed: build the driver's modules anew "
        "(dkms status; dkms build --force; dkms install --force), then run deploy again"
        if "Invalid argument" in said
        else "see: dmesg"
    )
    return f"network cards do not reach the memory of GPUs by nvidia-peermem: {said}; {hint}"


if __name__ == "__main__":
    main()

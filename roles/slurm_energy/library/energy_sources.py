#!/usr/bin/python
"""Ansible module: the kernel's side of what Slurm measures energy by."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left

DOCUMENTATION = r"""
module: energy_sources
short_description: The kernel's side of what Slurm measures energy by
description:
  - Loads the kernel's modules that show the sources, now and at each boot, and looks whether each gives any.
  - One that gives nothing is no failure. Slurm goes on without it, and C(deploy_pending) says why.
options:
  sources:
    description: The sources, as AcctGatherEnergyType has them; none takes away what an earlier run left.
    type: list
    elements: str
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_pending:
  description: The sources that give nothing, and why.
  type: list
  returned: always
deploy_manages:
  description: What is recorded of the host, by kind.
  type: dict
  returned: always
"""

_FILE = Path("/etc/modules-load.d/deploy-energy.conf")
_HEAD = "# Made by deploy; changes made here are undone by the next run.\n"
_BMC = ("ipmi_devintf", "ipmi_si")
_MODULES: Mapping[str, tuple[str, ...]] = {"rapl": ("msr",), "ipmi": _BMC, "xcc": _BMC}
"""The kernel's modules of each source."""
_POWER_UNIT = 0x606
"""The register by which Slurm knows whether it may read the others (acct_gather_energy_rapl.c)."""


def rapl(root: Path) -> str:
    """Why there are no counters of processors; empty where there are."""
    # In order of their numbers: Slurm reads the first processor of each socket.
    places = sorted((root / "dev/cpu").glob("*/msr"), key=lambda path: int(path.parent.name))
    if not places:
        return "there is no /dev/cpu/0/msr, and the kernel has no module msr"
    try:
        descriptor = os.open(places[0], os.O_RDONLY)
        try:
            unit = os.pread(descriptor, 8, _POWER_UNIT)
        finally:
            os.close(descriptor)
    except OSError as problem:
        return (
            f"its processors have no such registers, as in a virtual machine, or AMD's ({problem.strerror})"
        )
    return "" if any(unit) else "its processors have no such registers"


def bmc(root: Path) -> str:
    """Why no controller of the mainboard is reached; empty where one is."""
    places = ("dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0")
    return "" if any((root / place).exists() for place in places) else "there is no /dev/ipmi0"


def cray(root: Path) -> str:
    """Why HPE Cray's counters are not there; empty where they are."""
    place = "sys/cray/pm_counters/energy"
    return "" if (root / place).exists() else f"there is no /{place}"


_LOOKS: Mapping[str, Callable[[Path], str]] = {"rapl": rapl, "ipmi": bmc, "xcc": bmc, "pm_counters": cray}
"""Of GPUs the plugin is what Slurm needs, which comes with what finds them."""


def main() -> None:
    """Load, have it loaded at boot, and look."""
    arguments: dict[str, Any] = {"sources": {"type": "list", "elements": "str", "required": True}}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    bring(module, Path("/"))


def bring(module: AnsibleModule, root: Path) -> None:
    """The same for the file system below ``root``."""
    sources = [source for source in module.params["sources"] if source in _LOOKS]
    file = root / _FILE.relative_to("/")
    names = sorted({name for source in sources for name in _MODULES.get(source, ())})
    was_there = file.exists()
    if names:
        changed = keep(module, file, _HEAD + "".join(f"{name}\n" for name in names))
    else:
        changed = was_there
        if was_there and not module.check_mode:
            file.unlink()
    pending = []
    for source in sources:
        # Some kernels have them without a module, and others not at all; what counts is what is there then.
        if _LOOKS[source](root) and not module.check_mode:
            for name in _MODULES.get(source, ()):
                module.run_command(["modprobe", "--quiet", name])
        why = _LOOKS[source](root)
        # What a preview has not loaded it cannot look at.
        if why and not (module.check_mode and _MODULES.get(source)):
            pending.append(f"energy by {source} stays empty: {why}")
    module.exit_json(
        changed=changed,
        deploy_pending=pending,
        deploy_manages={"files": left([file])} if names or was_there else {},
    )


if __name__ == "__main__":
    main()

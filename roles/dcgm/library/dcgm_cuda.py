#!/usr/bin/python
"""Ansible module: for which CUDA DCGM's diagnostics have to be on a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_checks.nvidia_driver import library_version, running_version
from ansible.module_utils.nvidia_devices import Architecture, architecture, read_devices

DOCUMENTATION = r"""
module: dcgm_cuda
short_description: For which CUDA DCGM's diagnostics have to be on a machine
description:
  - Diagnostics load what is for the CUDA of the driver that is there, and nothing else.
options:
  version:
    description: The version of DCGM.
    type: str
    required: true
  asked:
    description: The driver that the site asks for; by its branch where there is none yet.
    type: str
    default: ""
author: [the maintainers of this project]
"""

RETURN = r"""
series:
  description: The series of CUDA, as in 13; two of them where old and new GPUs are beside each other.
  type: list
  returned: always
"""

_ROOT = Path("/")
_FIRST_WITH_13 = (4, 4)
_USUAL = "12"


def series(branch: int, version: tuple[int, ...], gpus: Iterable[Architecture | None]) -> list[str]:
    """The CUDA of a driver's branch, 0 for an unknown one, as far as this DCGM has diagnostics for it.

    A GPU that CUDA 13 does not know has those for 12, with the last branch that drives it.
    """
    if not branch:
        return [_USUAL]
    if branch < 525:  # noqa: PLR2004 - the first with CUDA 12
        return ["11"]
    if branch < 580 or version < _FIRST_WITH_13:  # noqa: PLR2004 - the first with CUDA 13
        return [_USUAL]
    return sorted({_USUAL if gpu and gpu.last_branch else "13" for gpu in gpus}) or ["13"]


def main() -> None:
    """Look at the driver and the GPUs."""
    arguments: dict[str, Any] = {
        "version": {"type": "str", "required": True},
        "asked": {"type": "str", "default": ""},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    driver = library_version(_ROOT) or running_version(_ROOT) or str(module.params["asked"])
    branch = re.search(r"\b\d{3}\b", driver)
    version = tuple(map(int, str(module.params["version"]).split(".")))
    gpus = [architecture(device.number) for device in read_devices(_ROOT / "sys") if device.is_gpu]
    module.exit_json(changed=False, series=series(int(branch[0]) if branch else 0, version, gpus))


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: which NVIDIA devices a machine has, and which driver is for it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.driver_choice import NotDrivenError, architectures, check_branch, choose_modules
from ansible.module_utils.host_checks.nvidia_driver import (
    library_files,
    library_version,
    running_version,
)
from ansible.module_utils.nvidia_devices import fabric, read_devices

DOCUMENTATION = r"""
module: nvidia_machine
short_description: Which NVIDIA devices a machine has, and which driver is for it
description:
  - Reads the PCI bus, without any driver, and changes nothing. Fails when what is asked for does not
    drive the GPUs.
options:
  source:
    description: Where the driver shall come from.
    type: str
    required: true
  kernel_modules:
    description: The kernel modules that are asked for.
    type: str
    required: true
  kernel:
    description: The kernel that the modules are for; empty means the one that runs.
    type: str
    default: ""
  branches:
    description: The driver's branch by source.
    type: dict
    required: true
  prefers_open:
    description: Whether the packages have no reason against open kernel modules, by source.
    type: dict
    required: true
  usual_headers:
    description: The package that brings headers with every kernel, where nothing says which those are.
    type: str
    required: true
  own_file:
    description: A file that is there when deploy installed the driver.
    type: path
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
gpus:
  description: How many GPUs there are.
  type: int
  returned: always
fabric:
  description: What links the GPUs, none, nvswitch or nvlink5.
  type: str
  returned: always
source:
  description: Where the driver comes from; none on a machine without GPUs.
  type: str
  returned: always
kernel_modules:
  description: open, proprietary or none.
  type: str
  returned: always
kernel:
  description: The kernel that the modules are for.
  type: str
  returned: always
has_driver:
  description: Whether there is a driver already, in packages or in the kernel, that jobs may use.
  type: bool
  returned: where a driver is to be installed
waits_for_reboot:
  description: Whether the kernel has another driver than the one that is installed.
  type: bool
  returned: where a driver is to be installed
headers:
  description: >-
    The packages that bring its headers, where they are missing, and where no kernel was named those that
    bring them with every later one.
  type: list
  returned: where a driver is to be installed
"""

_ROOT = Path("/")
_MANAGED = ("distribution", "nvidia")


def main() -> None:
    """Read, choose."""
    arguments: dict[str, Any] = {
        "source": {"type": "str", "required": True},
        "kernel_modules": {"type": "str", "required": True},
        "kernel": {"type": "str", "default": ""},
        "branches": {"type": "dict", "required": True},
        "prefers_open": {"type": "dict", "required": True},
        "usual_headers": {"type": "str", "required": True},
        "own_file": {"type": "path", "required": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    params = module.params
    devices = read_devices(_ROOT / "sys")
    gpus = [device for device in devices if device.is_gpu]
    kernel = params["kernel"] or os.uname().release
    answer = {"gpus": len(gpus), "fabric": fabric(devices), "kernel": kernel}
    source = params["source"] if gpus else "none"
    # The driver of another installer: its files belong to no package, or nothing of ours is there.
    libraries = library_files(_ROOT)
    is_ours = Path(params["own_file"]).exists()
    is_other = bool(libraries or running_version(_ROOT)) and not is_ours
    if source == "auto":
        source = "preinstalled" if is_other else "distribution"
    if source not in _MANAGED:
        module.exit_json(changed=False, source=source, kernel_modules="none", **answer)
    if libraries and module.run_command(["dpkg-query", "--search", str(libraries[0])])[0] != 0:
        module.fail_json(
            msg=f"a driver is installed that no package brought ({libraries[0]}), and packages would "
            "not replace it: "
            "remove it (nvidia-uninstall), or keep it with nvidia_driver_source: preinstalled"
        )
    known = architectures(gpus)
    branch = str(params["branches"].get(source) or "")
    if not branch.isdigit():
        module.fail_json(
            msg=f"no branch of the driver is known for this system: set nvidia_driver_branch (now {branch!r})"
        )
    try:
        modules = choose_modules(
            known, params["kernel_modules"], prefers_open=bool(params["prefers_open"].get(source))
        )
    except NotDrivenError as problem:
        module.fail_json(msg=str(problem))
    wrong = list(check_branch(known, int(branch), modules))
    if wrong:
        module.fail_json(
            msg="; ".join(wrong)
            + ". Set nvidia_driver_branch; NVIDIA's own repository (nvidia_driver_source: nvidia) has more "
            "of them than a distribution"
        )
    headers = _headers(kernel) if modules != "none" else []
    if headers and not _is_offered(module, headers[0]):
        module.fail_json(
            msg=f"no package source has {headers[0]}, so the driver cannot be built for that kernel: "
            + _without_headers(is_named=bool(params["kernel"]))
        )
    if modules != "none" and not params["kernel"]:
        headers = [*_following(module, kernel, str(params["usual_headers"])), *headers]
    running, has_nouveau = running_version(_ROOT), (_ROOT / "sys/module/nouveau").exists()
    module.exit_json(
        changed=False,
        source=source,
        kernel_modules=modules,
        headers=headers,
        has_driver=bool(libraries or running or has_nouveau),
        waits_for_reboot=modules != "none"
        and (has_nouveau or (bool(running) and running != library_version(_ROOT))),
        **answer,
    )


def _headers(kernel: str) -> list[str]:
    """The package with a kernel's headers; none where they are, as those of a site's own kernel."""
    return [] if Path(f"/lib/modules/{kernel}/build").exists() else [f"linux-headers-{kernel}"]


def flavour(kernel: str) -> str:
    """The flavour of a kernel that a distribution built: `6.1.0-56-cloud-amd64` -> cloud-amd64."""
    return re.sub(r"^\d[^-]*(-\d+)*-", "", kernel)


def followers(shown: str) -> list[str]:
    """The packages with the headers of kernels that are upgraded, of `dpkg-query`'s state and name a line.

    A package of one kernel has its version in the name.
    """
    installed = re.findall(r"^installed linux-image-(?!unsigned-)([a-z]\S*)$", shown, re.MULTILINE)
    return [f"linux-headers-{name}" for name in installed if not name.endswith("-dbg")]


def _following(module: AnsibleModule, kernel: str, usual: str) -> list[str]:
    """What brings headers with the kernels to come: DKMS builds for none that has no headers."""
    shown = ["dpkg-query", "--show", "--showformat=${db:Status-Status} ${Package}\n", "linux-image-*"]
    upgraded = [name for name in followers(str(module.run_command(shown)[1])) if _is_offered(module, name)]
    alike = f"linux-headers-{flavour(kernel)}"
    return upgraded or [alike if _is_offered(module, alike) else usual]


def _without_headers(*, is_named: bool) -> str:
    if is_named:
        return "name another in nvidia_driver_kernel (apt-cache search --names-only '^linux-headers-')"
    return (
        "upgrade the kernel and boot it (apt-get update; apt-get dist-upgrade; reboot), or bring its headers "
        "along, then run deploy again"
    )


def _is_offered(module: AnsibleModule, package: str) -> bool:
    answer = module.run_command(["apt-cache", "policy", package], environ_update={"LC_ALL": "C"})[1]
    return bool(re.search(r"Candidate: (?!\(none\))", str(answer)))


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: whether the driver that runs is the one that is installed, and what brings it there."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_checks.nvidia_driver import library_version, running_version

DOCUMENTATION = r"""
module: nvidia_driver_state
short_description: Whether the NVIDIA driver that runs is the one that is installed
description:
  - Loads the kernel modules where nothing is in their way; else leaves the reason for a reboot below
    C(/run/deploy/reboot),
    where the role reboot finds it. Fails when neither would help.
options:
  state:
    description: C(requested) loads modules or asks for a reboot; C(verified) fails where the two
      versions differ; C(explained) fails with what the compiler said when DKMS could not build, else
      with C(said).
    type: str
    choices: [requested, verified, explained]
    required: true
  kernel_modules:
    description: Whether this machine's own kernel runs the driver; C(none) compares nothing.
    type: str
    required: true
  version:
    description: What the installed version has to start with.
    type: str
    default: ""
  said:
    description: What apt said when the packages could not be installed.
    type: str
    default: ""
  pending:
    description: Whether a task of this run installs packages. Only check mode needs it.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
action:
  description: none, load or reboot.
  type: str
  returned: always
installed:
  description: The version of the driver's library; empty when there is none.
  type: str
  returned: always
deploy_impact:
  description: C(kind) reboot where one is needed, and C(reasons).
  type: dict
  returned: always
"""

_ROOT = Path("/")
_REASON = Path("/run/deploy/reboot/nvidia_driver")
_MODULES = ("nvidia", "nvidia_uvm")
_LOG_LINES = 6


def decide(running: str, on_disk: str, *, has_nouveau: bool) -> tuple[str, str]:
    """What brings the module on disk into the kernel, and why: none, load or reboot."""
    if has_nouveau:
        return "reboot", "the driver nouveau holds the GPUs"
    if not running:
        return "load", ""
    if running != on_disk:
        return "reboot", f"the NVIDIA driver {running} runs, and {on_disk} is installed"
    return "none", ""


def why_not_loaded(said: str) -> str:
    """What a failed modprobe means."""
    if "Key was rejected" in said or "Required key not available" in said:
        return (
            "Secure Boot refuses kernel modules that were built here: enrol the machine's key on its console "
            "(mokutil --import /var/lib/dkms/mok.pub, then reboot), or turn Secure Boot off"
        )
    if "No such device" in said:
        return "the driver finds no GPU that it drives; see: dmesg | grep NVRM"
    return f"{said.strip()[-300:]}; see: dmesg | grep -i nvrm"


def why_not_built(kernel: str, dkms: Path = Path("/var/lib/dkms")) -> str:
    """Why there is no module for the kernel that runs."""
    if not Path(f"/lib/modules/{kernel}/build").exists():
        return (
            f"the headers of the kernel that runs ({kernel}) are not installed, so nothing can be built "
            "for it: boot the "
            "newest kernel that the distribution has headers for, then run deploy again"
        )
    said = compiler_said(dkms)
    return f"no module was built for the kernel {kernel}" + (f" {said}" if said else "; see: dkms status")


def compiler_said(dkms: Path = Path("/var/lib/dkms")) -> str:
    """The log of the last build that failed, with its errors; empty when none did.

    DKMS keeps the log of a build in this place only until the build has succeeded.
    """
    logs = sorted(dkms.glob("nvidia*/*/build/make.log"), key=lambda path: path.stat().st_mtime)
    if not logs:
        return ""
    lines = logs[-1].read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if re.search(r": (fatal )?error: ", line)]
    return f"({logs[-1]}):\n" + "\n".join(errors[:_LOG_LINES] or lines[-_LOG_LINES:])


def why_not_installed(said: str, kernel: str, dkms: Path = Path("/var/lib/dkms")) -> str:
    """Why apt could not install the packages; it says no more than that one of their scripts failed."""
    if "returned an error code" not in said or not (compiled := compiler_said(dkms)):
        return said
    return (
        f"this driver cannot be built for the kernel (running: {kernel}) {compiled}\n"
        "Boot a kernel that it can be built for and remove the headers of later ones, or take another driver "
        "(nvidia_driver_source: nvidia), then run deploy again"
    )


class Driver:
    """The driver of this machine, as it is installed and as it runs."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self.kernel = os.uname().release
        self.running = running_version(_ROOT)
        self.installed = library_version(_ROOT)
        code, out, _ = module.run_command(["modinfo", "--field", "version", "nvidia"])
        self.on_disk = str(out).strip() if code == 0 else ""
        self.has_nouveau = (_ROOT / "sys/module/nouveau").exists()

    def load(self) -> None:
        """Loads the modules; fails with what is in their way."""
        for name in _MODULES:
            code, out, err = self._module.run_command(["modprobe", name])
            if code != 0:
                self._module.fail_json(msg=f"modprobe {name}: {why_not_loaded(str(out) + str(err))}")

    def keep_nouveau_out(self) -> None:
        """Has the next boot read /etc/modprobe.d in time: nouveau may come with the initramfs."""
        if self._module.get_bin_path("update-initramfs"):
            self._module.run_command(["update-initramfs", "-u"], check_rc=True)

    def mismatch(self) -> str:
        """Why the driver that runs is not the one that is installed; empty when it is."""
        if not self.running:
            return f"the NVIDIA driver {self.installed} is installed, and none runs: {why_not_loaded('')}"
        if self.running != self.installed:
            return (
                f"the NVIDIA driver {self.running} runs, and its library is {self.installed}: nothing "
                "can use the GPUs"
            )
        return ""


def main() -> None:
    """Compare, then load, ask or complain."""
    arguments: dict[str, Any] = {
        "state": {"type": "str", "choices": ["requested", "verified", "explained"], "required": True},
        "kernel_modules": {"type": "str", "required": True},
        "version": {"type": "str", "default": ""},
        "said": {"type": "str", "default": ""},
        "pending": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    params = module.params
    if params["state"] == "explained":
        module.fail_json(msg=why_not_installed(params["said"], os.uname().release))
    driver = Driver(module)
    if params["pending"] and module.check_mode:
        foreseen = "reboot" if driver.running or driver.has_nouveau else "load"
        reasons = ["another driver holds the GPUs"] if foreseen == "reboot" else []
        module.exit_json(changed=True, **_answer(foreseen, driver, reasons))
    if params["version"] and not re.match(re.escape(params["version"]), driver.installed):
        module.fail_json(
            msg=f"the installed driver is {driver.installed or 'not to be found'}, and "
            f"{params['version']} was asked for; "
            "see: apt-cache policy 'libnvidia-ml1' 'libnvidia-compute*'"
        )
    if params["kernel_modules"] == "none":
        module.exit_json(changed=False, **_answer("none", driver, []))
    if params["state"] == "verified":
        if wrong := driver.mismatch():
            module.fail_json(msg=wrong)
        module.exit_json(changed=False, **_answer("none", driver, []))
    if not driver.on_disk:
        module.fail_json(msg=why_not_built(driver.kernel))
    action, reason = decide(driver.running, driver.on_disk, has_nouveau=driver.has_nouveau)
    if not module.check_mode:
        _bring_about(driver, action, reason)
    module.exit_json(changed=action != "none", **_answer(action, driver, [reason] if reason else []))


def _bring_about(driver: Driver, action: str, reason: str) -> None:
    if action == "load":
        driver.load()
    elif action == "reboot":
        _REASON.parent.mkdir(parents=True, exist_ok=True)
        _REASON.write_text(reason + "\n", encoding="utf-8")
        if driver.has_nouveau:
            driver.keep_nouveau_out()


def _answer(action: str, driver: Driver, reasons: list[str]) -> dict[str, Any]:
    impact = {"kind": "reboot" if action == "reboot" else "none", "service": "", "reasons": reasons}
    return {"action": action, "installed": driver.installed, "deploy_impact": impact}


if __name__ == "__main__":
    main()

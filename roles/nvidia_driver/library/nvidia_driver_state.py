#!/usr/bin/python
"""Ansible module: whether the driver that runs is the one that is installed, and what brings it there."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_checks.nvidia_driver import library_version, module_version, running_version

DOCUMENTATION = r"""
module: nvidia_driver_state
short_description: Whether the NVIDIA driver that runs is the one that is installed
description:
  - Loads the kernel modules where nothing is in their way; else leaves the reason for a reboot below
    C(/run/deploy/reboot),
    where the role reboot finds it. Fails when neither would help.
  - Modules for another kernel than the one that runs only have to be there.
options:
  state:
    description: C(requested) loads modules or asks for a reboot; C(verified) fails where the two
      versions differ; C(explained) fails with what the compiler said when DKMS could not build, and takes
      the half-configured package off, else with C(said).
    type: str
    choices: [requested, verified, explained]
    required: true
  kernel_modules:
    description: Whether this machine's own kernel runs the driver; C(none) compares nothing.
    type: str
    required: true
  kernel:
    description: The kernel that the modules are for.
    type: str
    required: true
  beside:
    description: Modules of the kernel itself that the driver's daemons need, which are loaded, too.
    type: list
    elements: str
    default: []
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
  description: none, load, reboot, or later for another kernel's modules.
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
# What DKMS signs with: a key of its own, and on Ubuntu that of shim-signed.
_CERTIFICATES = ("/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der")
_LOG_LINES = 6
_KEPT_LOG = Path("/var/log/deploy-nvidia-dkms.log")
_HALF_CONFIGURED = re.compile(r"^i[FUHW]\S*\s+(nvidia-\S*dkms\S*)$", re.MULTILINE)


class Decision(NamedTuple):
    """What brings the modules on disk into the kernel: none, load or reboot; why, or which are loaded."""

    action: str
    reason: str
    loads: list[str]


def decide(running: str, on_disk: str, missing: Sequence[str] = (), *, has_nouveau: bool) -> Decision:
    """What is to be done; ``missing`` are modules beside the driver's that are not loaded."""
    if has_nouveau:
        return Decision("reboot", "the driver nouveau holds the GPUs", [])
    if running and running != on_disk:
        return Decision("reboot", f"the NVIDIA driver {running} runs, and {on_disk} is installed", [])
    loads = [*missing, *([] if running else _MODULES)]
    return Decision("load" if loads else "none", "", loads)


def certificate(root: Path) -> str:
    """The certificate of the key that DKMS signs with, which a site may have named in its settings."""
    settings = (root / "etc/dkms/framework.conf", *sorted(root.glob("etc/dkms/framework.conf.d/*.conf")))
    texts = [path.read_text(encoding="utf-8") for path in settings if path.is_file()]
    named = re.findall(r"^\s*mok_certificate=[\"']?(/[^\"'\s$]+)[\"']?$", "\n".join(texts), re.MULTILINE)
    candidates = [*named[-1:], *_CERTIFICATES]
    return next((path for path in candidates if (root / path[1:]).exists()), _CERTIFICATES[0])


def why_not_loaded(said: str, root: Path = _ROOT) -> str:
    """What a failed modprobe means."""
    if "Key was rejected" in said or "Required key not available" in said:
        return (
            "Secure Boot refuses kernel modules that were built here: enrol the machine's key on its console "
            f"(mokutil --import {certificate(root)}, then reboot), or turn Secure Boot off"
        )
    if "No such device" in said:
        return "the driver finds no GPU that it drives; see: dmesg | grep NVRM"
    return f"{said.strip()[-300:]}; see: dmesg | grep -i nvrm"


def why_not_beside(said: str, kernel: str) -> str:
    """What a failed modprobe of the kernel's own modules means."""
    if "not found" in said:
        extra = f"linux-modules-extra-{kernel}"
        return f"{said.strip()[-300:]}; the driver's daemons need it. Ubuntu has it in {extra}"
    return f"{said.strip()[-300:]}; see: dmesg"


def why_not_built(kernel: str, dkms: Path = Path("/var/lib/dkms")) -> str:
    """Why there is no module for a kernel."""
    if not Path(f"/lib/modules/{kernel}/build").exists():
        return (
            f"the headers of the kernel {kernel} are not installed, so nothing can be built "
            "for it: boot the "
            "newest kernel that the distribution has headers for, then run deploy again"
        )
    log = failed_build(dkms)
    if log is None:
        return f"no module was built for the kernel {kernel}; see: dkms status"
    return f"no module was built for the kernel {kernel} ({log}):\n{errors_in(log)}"


def failed_build(dkms: Path = Path("/var/lib/dkms")) -> Path | None:
    """The log of the last build that failed, if one did.

    DKMS keeps the log of a build in this place only until the build has succeeded.
    """
    logs = sorted(dkms.glob("nvidia*/*/build/make.log"), key=lambda path: path.stat().st_mtime)
    return logs[-1] if logs else None


def errors_in(log: Path) -> str:
    """What the compiler complained of first, else how the log ends."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if re.search(r": (fatal )?error: ", line)]
    return "\n".join(errors[:_LOG_LINES] or lines[-_LOG_LINES:])


def built_for(log: Path) -> str:
    """The kernel of a build, which need not be the one that runs: DKMS builds for the newest headers, too."""
    found = re.search(r"for kernel (\S+)", log.read_text(encoding="utf-8", errors="replace")[:500])
    return found[1] if found else "that it was built for"


def why_not_built_here(log: Path, kernel_modules: str) -> str:
    """Why these modules cannot be had here, and what can be."""
    proprietary = "nvidia_driver_kernel_modules: proprietary, where no GPU needs the open ones"
    choices = [
        *([proprietary] if kernel_modules == "open" else []),
        "nvidia_driver_source: nvidia, which has later drivers",
        "a kernel that it can be built for, booted, with the headers of later ones removed",
    ]
    return (
        f"this driver's kernel modules ({kernel_modules}) do not compile for the kernel {built_for(log)} "
        f"({log}):\n{errors_in(log)}\n"
        f"They were taken off again, so that apt works. What may help: {'; or '.join(choices)}. "
        "Then run deploy again"
    )


class Driver:
    """The driver of this machine, as it is installed and as it runs."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        self.kernel = str(module.params["kernel"])
        self.running = running_version(_ROOT)
        self.installed = library_version(_ROOT)
        self.on_disk = module_version(self._said, self.kernel)
        self.has_nouveau = (_ROOT / "sys/module/nouveau").exists()

    def _said(self, *command: str) -> str:
        code, out, _ = self._module.run_command(list(command))
        return str(out) if code == 0 else ""

    def missing(self) -> list[str]:
        """The modules beside the driver's that are not in the kernel."""
        return [name for name in self._module.params["beside"] if not (_ROOT / "sys/module" / name).exists()]

    def load(self, names: Sequence[str]) -> None:
        """Loads modules; fails with what is in their way."""
        for name in names:
            code, out, err = self._module.run_command(["modprobe", name])
            if code != 0:
                said = str(out) + str(err)
                why = why_not_loaded(said) if name in _MODULES else why_not_beside(said, self.kernel)
                self._module.fail_json(msg=f"modprobe {name}: {why}")

    def keep_nouveau_out(self) -> None:
        """Has the next boot read /etc/modprobe.d in time: nouveau may come with the initramfs."""
        if self._module.get_bin_path("update-initramfs"):
            self._module.run_command(["update-initramfs", "-u"], check_rc=True)

    @property
    def is_for_later(self) -> bool:
        """Whether the modules are for another kernel than the one that runs."""
        return self.kernel != os.uname().release

    def foreseen(self) -> str:
        """What will bring a driver into the kernel that is not installed yet."""
        if self.is_for_later:
            return "later"
        return "reboot" if self.running or self.has_nouveau else "load"

    def unfit_on_disk(self) -> str:
        """Why the modules on disk cannot drive the GPUs; empty when they can."""
        if not self.on_disk:
            return why_not_built(self.kernel)
        if self.on_disk != self.installed:
            return (
                f"the modules for the kernel {self.kernel} are {self.on_disk}, and the library is "
                f"{self.installed}: nothing could use the GPUs; see: dkms status"
            )
        return ""

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
        "kernel": {"type": "str", "required": True},
        "beside": {"type": "list", "elements": "str", "default": []},
        "version": {"type": "str", "default": ""},
        "said": {"type": "str", "default": ""},
        "pending": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    params = module.params
    if params["state"] == "explained":
        module.fail_json(msg=_explained(module))
    driver = Driver(module)
    if params["pending"] and module.check_mode:
        foreseen = driver.foreseen()
        reasons = ["another driver holds the GPUs"] if foreseen == "reboot" else []
        module.exit_json(changed=True, **_answer(foreseen, driver, reasons))
    if params["version"] and not re.match(re.escape(params["version"]), driver.installed):
        module.fail_json(
            msg=f"the installed driver is {driver.installed or 'not to be found'}, and "
            f"{params['version']} was asked for; "
            "see: apt-cache policy 'libnvidia-ml1' 'libnvidia-compute*'"
        )
    if params["kernel_modules"] == "none" or (params["state"] == "verified" and driver.is_for_later):
        module.exit_json(changed=False, **_answer("none", driver, []))
    if params["state"] == "verified":
        if wrong := driver.mismatch():
            module.fail_json(msg=wrong)
        module.exit_json(changed=False, **_answer("none", driver, []))
    if wrong := driver.unfit_on_disk():
        module.fail_json(msg=wrong)
    if driver.is_for_later:
        module.exit_json(changed=False, **_answer("later", driver, []))
    decision = decide(driver.running, driver.on_disk, driver.missing(), has_nouveau=driver.has_nouveau)
    if not module.check_mode:
        _bring_about(driver, decision)
    reasons = [decision.reason] if decision.reason else []
    module.exit_json(changed=decision.action != "none", **_answer(decision.action, driver, reasons))


def _explained(module: AnsibleModule) -> str:
    """Why apt could not install the packages: it says no more than that one of their scripts failed.

    A package that stays half-configured would make apt build, and fail, again with whatever it installs next.
    """
    said, log = str(module.params["said"]), failed_build()
    shown = module.run_command(["dpkg-query", "--show", "--showformat=${db:Status-Abbrev}\t${Package}\n"])[1]
    half = _HALF_CONFIGURED.findall(str(shown))
    if log is None or not half or module.check_mode:
        return said
    shutil.copyfile(log, _KEPT_LOG)
    environment = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    for command in (["apt-get", "--yes", "--quiet", "remove", *half], ["dpkg", "--configure", "--pending"]):
        code, out, err = module.run_command(command, environ_update=environment)
        if code != 0:
            return f"{said}\nand {' '.join(command)}: {(str(out) + str(err)).strip()[-500:]}; see {_KEPT_LOG}"
    return why_not_built_here(_KEPT_LOG, module.params["kernel_modules"])


def _bring_about(driver: Driver, decision: Decision) -> None:
    if decision.action == "load":
        driver.load(decision.loads)
    elif decision.action == "reboot":
        _REASON.parent.mkdir(parents=True, exist_ok=True)
        _REASON.write_text(decision.reason + "\n", encoding="utf-8")
        if driver.has_nouveau:
            driver.keep_nouveau_out()


def _answer(action: str, driver: Driver, reasons: list[str]) -> dict[str, Any]:
    impact = {"kind": "reboot" if action == "reboot" else "none", "service": "", "reasons": reasons}
    return {"action": action, "installed": driver.installed, "deploy_impact": impact}


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: whether the kernel module nvidia was loaded with other options than it shall have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.host_checks.nvidia_driver import running_version
from ansible.module_utils.root_file import text_of

DOCUMENTATION = r"""
module: nvidia_options
short_description: Whether the kernel module nvidia was loaded with other options than it shall have
description:
  - A module reads its options when it is loaded. Before they change in C(file) while the driver runs, this
    module leaves the reason for a reboot below C(/run/deploy/reboot), which a run that is cut off does not
    lose.
options:
  file:
    description: The file of modprobe that has the options.
    type: path
    required: true
  options:
    description: The options that the file is going to have, as it has them.
    type: str
    required: true
  is_written:
    description: Whether the file has them by now. Then the initramfs gets them, too, where a reboot waits.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
waits_for_reboot:
  description: Whether the options take effect with the next boot only.
  type: bool
  returned: always
deploy_impact:
  description: C(kind) reboot where they change while the driver runs, and C(reasons).
  type: dict
  returned: always
"""

_REASON = Path("run/deploy/reboot/nvidia_options")


def written(text: str) -> str:
    """The options of the module nvidia in a file of modprobe."""
    return " ".join(re.findall(r"^options nvidia (.*)$", text, re.MULTILINE)).strip()


def differing(old: str, new: str) -> list[str]:
    """The names of the options that are not the same."""
    return sorted({word.partition("=")[0] for word in {*old.split()} ^ {*new.split()}})


def main() -> None:
    """Compare, and leave the reason."""
    arguments: dict[str, Any] = {
        "file": {"type": "path", "required": True},
        "options": {"type": "str", "required": True},
        "is_written": {"type": "bool", "default": False},
    }
    look(AnsibleModule(argument_spec=arguments, supports_check_mode=True), Path("/"))


def look(module: AnsibleModule, root: Path) -> None:
    """The same for the file system below ``root``."""
    old, new = written(text_of(root / module.params["file"].lstrip("/"))), module.params["options"].strip()
    changes = old != new and bool(running_version(root))
    reason = f"the kernel module nvidia was loaded with other options ({', '.join(differing(old, new))})"
    file = root / _REASON
    if changes and not module.check_mode:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(reason + "\n", encoding="utf-8")
    waits = file.exists()
    updates = module.params["is_written"] and waits and bool(module.get_bin_path("update-initramfs"))
    if updates and not module.check_mode:
        module.run_command(["update-initramfs", "-u"], check_rc=True)
    impact = {"kind": "reboot" if changes else "none", "service": "", "reasons": [reason] if changes else []}
    module.exit_json(
        changed=changes or updates, waits_for_reboot=waits, deploy_impact=impact, deploy_manages={}
    )


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: why this machine should reboot.

find and slurp would not do: a plan has to say that the host reboots, and why (deploy_impact).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: reboot_wanted
short_description: Why this machine should reboot
description:
  - Reads the reasons that roles left in files below C(directory), which is in memory, so that a reboot
    forgets them.
options:
  directory:
    description: Where the reasons are.
    type: path
    default: /run/deploy/reboot
author: [the maintainers of this project]
"""

RETURN = r"""
reasons:
  description: The reasons, one of each role that has one.
  type: list
  returned: always
deploy_impact:
  description: C(kind), reboot or none, and C(reasons); how C(deploy plan) knows what a change does.
  type: dict
  returned: always
"""


def read_reasons(directory: Path) -> list[str]:
    """The reasons, in the order of the roles' names."""
    return [path.read_text(encoding="utf-8").strip() for path in sorted(directory.glob("*"))]


def main() -> None:
    """Look; the rebooting itself is for Ansible."""
    arguments: dict[str, Any] = {"directory": {"type": "path", "default": "/run/deploy/reboot"}}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    reasons = read_reasons(Path(module.params["directory"]))
    impact = {"kind": "reboot" if reasons else "none", "service": "", "reasons": reasons}
    module.exit_json(changed=bool(reasons), reasons=reasons, deploy_impact=impact, deploy_manages={})


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: a MariaDB server leaves a cluster whose key is another one from now on."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.member_unit import is_older, unit_of_mariadb

DOCUMENTATION = r"""
module: mariadb_leave
short_description: A MariaDB server leaves a cluster whose key is another one from now on
description:
  - Stops the server where it was started before the key was written by which members know each other. It
    ends in order, so the others go on without it. When it is started again it joins those who have that key.
options:
  key_file:
    description: That key.
    type: path
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_impact:
  description: As of service_current.
  type: dict
  returned: always
"""


def main() -> None:
    """Look, stop."""
    arguments: dict[str, Any] = {"key_file": {"type": "path", "required": True, "no_log": False}}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    key = module.params["key_file"]
    leaves = is_older(unit_of_mariadb(module), key)
    if leaves and not module.check_mode:
        module.run_command(["systemctl", "stop", "mariadb"], check_rc=True)
    impact = {
        "kind": "restart" if leaves else "none",
        "service": "mariadb",
        "reasons": [key] if leaves else [],
    }
    module.exit_json(changed=leaves, deploy_impact=impact)


if __name__ == "__main__":
    main()

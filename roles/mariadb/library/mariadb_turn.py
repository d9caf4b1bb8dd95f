#!/usr/bin/python
"""Ansible module: whether a member of the database may be restarted now."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.mariadb_client import lines
from ansible.module_utils.member_unit import is_older, unit_of_mariadb

DOCUMENTATION = r"""
module: mariadb_turn
short_description: Whether a member of the database may be restarted now
description:
  - Galera lets no server join a group in which only the arbitrator is left. So the only member that has rows
    goes on with the settings that it has until another one has joined.
  - Nothing is changed. In check mode the others that are to join have not yet, and nobody is asked.
options:
  inputs:
    description: The files that it reads when it starts. With a newer one it would be restarted.
    type: list
    elements: path
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
may:
  description: Whether it may.
  type: bool
  returned: always
deploy_pending:
  description: What is left to a later run.
  type: list
  returned: always
"""

_STATEMENT = "SHOW GLOBAL STATUS LIKE 'wsrep_incoming_addresses'"
_PENDING = (
    "MariaDB goes on with its former settings until another host with the database is a member again: "
    "alone beside the arbitrator it could not join after a restart"
)


def have_rows(said: list[str]) -> int:
    """How many members have rows: where clients reach them; an arbitrator is reached by none."""
    addresses = "".join(line.partition("\t")[2] for line in said)
    return sum(bool(address.strip()) for address in addresses.split(","))


def main() -> None:
    """Ask."""
    arguments: dict[str, Any] = {"inputs": {"type": "list", "elements": "path", "required": True}}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    unit = unit_of_mariadb(module)
    is_asked = not module.check_mode and any(is_older(unit, path) for path in module.params["inputs"])
    may = not is_asked or have_rows(lines(module, _STATEMENT)) > 1
    module.exit_json(changed=False, may=may, deploy_pending=[] if may else [_PENDING])


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: accounts of a database server that were declared before and are no more."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.given import given, remember
from ansible.module_utils.mariadb_client import lines
from ansible.module_utils.mariadb_former import Known, Server, noted, remaining, statements, stays

DOCUMENTATION = r"""
module: mariadb_former
short_description: Accounts of a database server that were declared before and are no more
description:
  - Remembers which accounts and databases were declared, and which of them were there already. It has to be
    asked before any is made.
  - With C(revokes) accounts that are declared no more are dropped, and their connections end. Those that were
    there before lose their privileges. Databases stay and are named.
options:
  accounts:
    description: The declared accounts, each as its name and its host.
    type: list
    elements: list
    required: true
  databases:
    description: The declared databases.
    type: list
    elements: str
    required: true
  revokes:
    description: Whether what is declared no more is taken away.
    type: bool
    default: false
author: [the maintainers of this project]
"""

RETURN = r"""
statements:
  description: The statements that were run, or would be in check mode.
  type: list
  returned: always
deploy_pending:
  description: What is declared no more and stays, with the reason.
  type: list
  returned: always
"""

_REMEMBERED = "mariadb"
_ACCOUNTS = "SELECT user, host FROM mysql.user"
_DATABASES = "SELECT schema_name FROM information_schema.schemata"


def main() -> None:
    """Ask, compare, take away."""
    arguments: dict[str, Any] = {
        "accounts": {"type": "list", "elements": "list", "required": True},
        "databases": {"type": "list", "elements": "str", "required": True},
        "revokes": {"type": "bool", "default": False},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    declared = Server.of(module.params["accounts"], module.params["databases"])
    accounts = (line.split("\t") for line in lines(module, _ACCOUNTS))
    present = Server.of(accounts, lines(module, _DATABASES))
    before = Known.from_data(given(_REMEMBERED))
    revokes = module.params["revokes"]
    known = before if revokes else noted(before, declared, present)
    due = list(statements(known, declared, present)) if revokes else []
    pending = list(stays(known, declared, present)) if revokes else []
    if not module.check_mode:
        for statement in due:
            lines(module, statement)
        remember(_REMEMBERED, (remaining(known, declared, present) if revokes else known).as_data())
    module.exit_json(
        changed=bool(due),
        statements=due,
        diff={"before": "", "after": "".join(f"{statement}\n" for statement in due)},
        deploy_pending=pending,
    )


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: a MariaDB server that was one of several goes on alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.member_unit import unit_of_mariadb

DOCUMENTATION = r"""
module: mariadb_alone
short_description: A MariaDB server that was one of several goes on alone
description:
  - Fails where a member of a cluster may not become a server of its own, as rows would be missing there.
    Others are members still, whom somebody may tell something meanwhile, or it does not have all rows.
  - It has them where it serves as the only one left, and where it ended after all others.
  - Changes nothing. A server that is no member is not asked.
options:
  key_file:
    description: What a member has.
    type: path
    required: true
  state_file:
    description: Where the member keeps what it was when it ended.
    type: path
    default: /var/lib/mysql/grastate.dat
author: [the maintainers of this project]
"""

RETURN = r"""
"""

_STATUS = (
    "SHOW GLOBAL STATUS WHERE Variable_name IN "
    "('wsrep_cluster_status', 'wsrep_local_state_comment', 'wsrep_cluster_size')"
)
_LAST = re.compile(r"^safe_to_bootstrap:\s*1\s*$", re.MULTILINE)


def trouble(said: dict[str, str], *, was_last: bool) -> str:
    """Why rows would be missing, and what to do; empty where none would."""
    if said.get("wsrep_cluster_status") != "Primary":
        if was_last:
            return ""
        return (
            "it does not serve, so nobody knows whether it has all rows. Start the others until deploy "
            "status, with them in [slurm-database], calls it synced; stop them; then the same again. If they "
            "are lost, and it shall go on with what it has: systemctl stop mariadb; sed -i 's/^safe_to_"
            "bootstrap:.*/safe_to_bootstrap: 1/' /var/lib/mysql/grastate.dat   (there), then the same again"
        )
    if said.get("wsrep_local_state_comment") != "Synced":
        return "it has not all rows yet. Wait until deploy status calls it synced, then the same again"
    others = int(said.get("wsrep_cluster_size", "0")) - 1
    if others > 0:
        who = "1 other is a member" if others == 1 else f"{others} others are members"
        return (
            f"{who} still; what they are told from now on would be missing here. Stop them: systemctl "
            "disable --now slurmdbd mariadb   (on the other host with rows), systemctl disable --now garb   "
            "(on the arbitrator), or deploy node remove of a host that left the inventory; then the same "
            "again"
        )
    return ""


def main() -> None:
    """Ask, judge."""
    arguments: dict[str, Any] = {
        "key_file": {"type": "path", "required": True, "no_log": False},
        "state_file": {"type": "path", "default": "/var/lib/mysql/grastate.dat"},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    if not Path(module.params["key_file"]).exists() or not module.get_bin_path("mariadb"):
        module.exit_json(changed=False)
    is_ending = unit_of_mariadb(module)["ActiveState"] == "deactivating"
    out = module.run_command(["mariadb", "--batch", "--skip-column-names", "--execute", _STATUS])[1]
    said = dict(line.split("\t", 1) for line in out.splitlines() if "\t" in line)
    state = Path(module.params["state_file"])
    was_last = state.exists() and bool(_LAST.search(state.read_text(encoding="utf-8")))
    if why := trouble({} if is_ending else said, was_last=was_last):
        module.fail_json(
            msg=f"nothing was changed: this host was one of several with the accounting database, and {why}"
        )
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()

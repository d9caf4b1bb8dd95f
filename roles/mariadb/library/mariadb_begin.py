#!/usr/bin/python
"""Ansible module: a MariaDB server begins a cluster of which no member serves."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.member_unit import is_older, unit_of_mariadb

DOCUMENTATION = r"""
module: mariadb_begin
short_description: A MariaDB server begins a cluster of which no member serves
description:
  - Starts the server as the first member, with what it has; others join it and take that over. Whether it is
    the right one has to be known before.
  - A server that is a member of a majority is left alone, unless it was started with another key.
  - What an earlier beginning that was killed has left is taken back, so that one that does not begin joins.
options:
  begins:
    description: Whether none of the members serves, and this one has the rows.
    type: bool
    required: true
  key_file:
    description:
      - The key by which members know each other. A member that serves and was started before it was written
        begins anew. Others must have left before, as they would not come in any more.
    type: path
  state_file:
    description: Where the member keeps what it was when it ended.
    type: path
    default: /var/lib/mysql/grastate.dat
author: [the maintainers of this project]
"""

RETURN = r"""
runs:
  description: Whether it runs now, before or after it began.
  type: bool
  returned: always
deploy_impact:
  description: As of service_current.
  type: dict
  returned: always
"""

_SAFE = re.compile(r"^safe_to_bootstrap:.*$", re.MULTILINE)
_PATIENCE, _PAUSE = 30.0, 1.0  # seconds
_NEW_CLUSTER = "_WSREP_NEW_CLUSTER"
_NEW_CLUSTER_FILE = Path("/run/mariadb-wsrep-new-cluster")
_STATUS = "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_status'"


def may_begin(state: str) -> str:
    """What the member keeps, with its own leave to begin."""
    return _SAFE.sub("safe_to_bootstrap: 1", state)


def as_before(state: str, before: str) -> str:
    """What it keeps now, with the word of before on whether it may begin."""
    had = _SAFE.search(before)
    return _SAFE.sub(lambda _: had[0], state) if had else state


def forget_new_cluster(module: AnsibleModule) -> None:
    """Takes back what a galera_new_cluster that was killed has left: by that each start begins a new cluster.

    Older ones have it in systemd's environment, newer ones in a file.
    """
    _NEW_CLUSTER_FILE.unlink(missing_ok=True)
    module.run_command(["systemctl", "unset-environment", _NEW_CLUSTER], check_rc=True)


def _serves(module: AnsibleModule) -> bool:
    """Whether the server is a member of a majority; one that is ending is none any more."""
    if not module.get_bin_path("mariadb") or unit_of_mariadb(module)["ActiveState"] == "deactivating":
        return False
    code, out, _ = module.run_command(["mariadb", "--batch", "--skip-column-names", "--execute", _STATUS])
    return code == 0 and out.split()[1:] == ["Primary"]


def main() -> None:
    """Ask, allow, start."""
    arguments: dict[str, Any] = {
        "begins": {"type": "bool", "required": True},
        "key_file": {"type": "path", "no_log": False},
        "state_file": {"type": "path", "default": "/var/lib/mysql/grastate.dat"},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    path, key = Path(module.params["state_file"]), module.params["key_file"]
    if not module.check_mode:
        forget_new_cluster(module)
    is_anew = bool(key) and is_older(unit_of_mariadb(module), key) and _serves(module)
    if not (is_anew or module.params["begins"]):
        runs = unit_of_mariadb(module)["ActiveState"] == "active"
        impact = {"kind": "none", "service": "mariadb", "reasons": []}
        module.exit_json(changed=False, runs=runs, deploy_impact=impact)
    # Of members that were cut off together those that are back begin by themselves, once all are there.
    deadline = time.monotonic() + (_PATIENCE if (path.parent / "gvwstate.dat").exists() else 0)
    while not (serves := _serves(module)) and time.monotonic() < deadline and not module.check_mode:
        time.sleep(_PAUSE)
    serves = serves and not is_anew
    impact = {
        "kind": "none" if serves else "restart",
        "service": "mariadb",
        "reasons": [key] if is_anew else [],
    }
    if serves or module.check_mode:
        module.exit_json(changed=not serves, runs=serves, deploy_impact=impact)
    module.run_command(["systemctl", "daemon-reload"], check_rc=True)
    # One that waits for others would go on doing so.
    module.run_command(["systemctl", "stop", "mariadb"], check_rc=True)
    # Written in place: a second one of it is worth nothing, and its owner is the server's.
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before:
        path.write_text(may_begin(before), encoding="utf-8")
    code, out, err = module.run_command(["galera_new_cluster"])
    if code != 0:
        # By that word it would begin the next time, too, when another one has gone on meanwhile.
        if before and path.exists():
            path.write_text(as_before(path.read_text(encoding="utf-8"), before), encoding="utf-8")
        journal = module.run_command(["journalctl", "-u", "mariadb", "-n", "10", "--no-pager", "-o", "cat"])[
            1
        ]
        module.fail_json(msg=f"MariaDB does not begin: {(err or out).strip()} | {journal.strip()[-600:]}")
    module.exit_json(changed=True, runs=True, deploy_impact=impact)


if __name__ == "__main__":
    main()

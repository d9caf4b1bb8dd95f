#!/usr/bin/python
"""Ansible module: the cluster's table of nftables, now and after every boot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.firewall_table import NAME, Table
from ansible.module_utils.own_connection import connection
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: firewall_rules
short_description: The cluster's table of nftables, now and after every boot
description:
  - Has nftables judge the table in a network of its own, compares it with the one that is there, and loads it
    in one transaction. Nothing is changed when the connection that this run comes by would be refused.
options:
  cluster:
    description: Addresses and networks from which everything is accepted.
    type: list
    elements: str
    required: true
  ssh_ports:
    description: The ports of sshd.
    type: list
    elements: int
    required: true
  ssh_from:
    description: Addresses and networks from which ssh is accepted.
    type: list
    elements: str
    required: true
  opened:
    description: Further openings, each with ports, protocol and from.
    type: list
    elements: dict
    default: []
  guarded:
    description: What the cluster's hosts reach only where they are named, each with ports and from.
    type: list
    elements: dict
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The files and the unit.
  type: dict
  returned: always
"""

_FILE = Path("/etc/deploy-firewall.nft")
_SERVICE = "deploy-firewall.service"
_UNIT = Path("/etc/systemd/system") / _SERVICE
_TRY = f'"$0" -f - && "$0" --stateless --numeric-protocol list table {NAME}'
_UNIT_TEXT = f"""\
# Made by deploy; changes made here are undone by the next run.
[Unit]
Description=What this host accepts from outside of the cluster
DefaultDependencies=no
Wants=network-pre.target
Before=network-pre.target shutdown.target
Conflicts=shutdown.target
# The distribution's own service flushes all tables.
After=nftables.service
PartOf=nftables.service
ReloadPropagatedFrom=nftables.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f {_FILE}
ExecReload=/usr/sbin/nft -f {_FILE}
ExecStop=/usr/sbin/nft delete table {NAME}

[Install]
WantedBy=sysinit.target
"""


class Firewall:
    """The table of one host."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module
        try:
            self._table = Table.of(module.params)
        except ValueError as problem:
            module.fail_json(msg=f"firewall: {problem}. Nothing was changed")
        self._nft = module.get_bin_path("nft", opt_dirs=["/usr/sbin"])

    @property
    def files(self) -> dict[Path, str]:
        """What lies on the disk."""
        return {_FILE: self._table.text(), _UNIT: _UNIT_TEXT}

    def refuse_what_shuts_out(self) -> None:
        """Lets the connection of this run come again."""
        where = connection(os.getpid())
        if where and not self._table.admits(*where):
            self._module.fail_json(
                msg=f"this run comes from {where[0]} to port {where[1]}, which would be refused from now on. "
                f"Nothing was changed. Name it: firewall_admin_networks: [{where[0]}]"
            )

    def loaded(self) -> str:
        """The table that the kernel has, as nft writes it; empty without one."""
        code, out, _ = self._module.run_command(
            [self._nft, "--stateless", "--numeric-protocol", "list", "table", *NAME.split()]
        )
        return str(out) if code == 0 else ""

    def wanted(self) -> str:
        """The table as nft would write it; what nft refuses fails here, before anything changes."""
        command = ["unshare", "--net", "sh", "-c", _TRY, self._nft]
        code, out, err = self._module.run_command(command, data=self._table.text())
        if code != 0:
            self._module.fail_json(
                msg=f"nft refuses the rules: {err.strip().rstrip('.')}. Nothing was changed"
            )
        return str(out)

    def differs(self) -> bool:
        """Whether the kernel has something else. Without nft, which check mode does not install, it has."""
        return self._nft is None or self.loaded() != self.wanted()

    def load(self) -> None:
        """In one transaction; connections stay."""
        self._module.run_command([self._nft, "-f", str(_FILE)], check_rc=True)


def _is(module: AnsibleModule, state: str) -> bool:
    return bool(module.run_command(["systemctl", f"is-{state}", "--quiet", _SERVICE])[0] == 0)


def main() -> None:
    """Compare the kernel and the files with what they should have; judge; write; load."""
    arguments: dict[str, Any] = {
        "cluster": {"type": "list", "elements": "str", "required": True},
        "ssh_ports": {"type": "list", "elements": "int", "required": True},
        "ssh_from": {"type": "list", "elements": "str", "required": True},
        "opened": {"type": "list", "elements": "dict", "default": []},
        "guarded": {"type": "list", "elements": "dict", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    firewall = Firewall(module)
    before = {path: text_of(path) for path in firewall.files}
    differing = [path for path, text in firewall.files.items() if before[path] != text]
    load, start = firewall.differs(), not (_is(module, "enabled") and _is(module, "active"))
    changed = bool(differing or load or start)
    if changed:
        firewall.refuse_what_shuts_out()
    for path, text in firewall.files.items():
        changed |= keep(module, path, text)
    if changed and not module.check_mode:
        if load:
            firewall.load()
        if _UNIT in differing:
            module.run_command(["systemctl", "daemon-reload"], check_rc=True)
        if start:
            module.run_command(["systemctl", "enable", "--now", _SERVICE], check_rc=True)
    module.exit_json(
        changed=changed,
        deploy_manages={"files": left(firewall.files), "services": [_SERVICE]},
        diff=[
            {
                "before": before[path],
                "after": firewall.files[path],
                "before_header": str(path),
                "after_header": str(path),
            }
            for path in differing
        ],
    )


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: limits on what the sessions of each user take together."""

from __future__ import annotations

import pwd
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left

DOCUMENTATION = r"""
module: user_slices
short_description: Limits on what the sessions of each user take together
description:
  - Writes drop-ins for systemd's user slices and has systemd take them, also for sessions that are there.
options:
  memory:
    description: Most memory of one user, as in 25%, 16G or infinity.
    type: str
    required: true
  swap:
    description: Most swap of one user.
    type: str
    required: true
  processes:
    description: Most processes and threads of one user.
    type: int
    required: true
  cpus:
    description: Most CPUs of one user; 0 means no limit.
    type: float
    default: 0
  exempt:
    description: Accounts without limits; root never has any.
    type: list
    elements: str
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The files.
  type: dict
  returned: always
"""

_UNITS = Path("/etc/systemd/system")
_FILE = "50-deploy.conf"
_HEAD = "# Made by deploy; changes made here are undone by the next run.\n[Slice]\n"
_EVERYBODY = f"user-.slice.d/{_FILE}"
_ONE = re.compile(r"user-\d+\.slice\.d")
_NO_LIMITS = f"{_HEAD}MemoryMax=infinity\nMemorySwapMax=infinity\nTasksMax=infinity\nCPUQuota=\n"


def limits(parameters: Mapping[str, Any]) -> str:
    """The drop-in that holds for everybody."""
    quota = f"CPUQuota={parameters['cpus'] * 100:g}%\n" if parameters["cpus"] else ""
    return (
        f"{_HEAD}MemoryMax={parameters['memory']}\nMemorySwapMax={parameters['swap']}\n"
        # A weight makes systemd share CPUs between users instead of between processes.
        f"TasksMax={parameters['processes']}\nCPUWeight=100\n{quota}"
    )


def drop_ins(parameters: Mapping[str, Any], exempt: Mapping[str, int]) -> dict[str, str]:
    """Path below systemd's directory -> text; ``exempt`` are accounts with their ids."""
    return {
        _EVERYBODY: limits(parameters),
        **{f"user-{uid}.slice.d/{_FILE}": _NO_LIMITS for uid in sorted({0, *exempt.values()})},
    }


def present(units: Path) -> dict[str, str]:
    """The drop-ins that are there, of earlier runs too."""
    paths = [path for path in units.glob(f"user-*.slice.d/{_FILE}") if _ONE.fullmatch(path.parent.name)]
    paths += [path for path in [units / _EVERYBODY] if path.exists()]
    return {str(path.relative_to(units)): path.read_text(encoding="utf-8") for path in paths}


def _ids(names: list[str]) -> dict[str, int]:
    """The ids of accounts; one that is not there needs no exemption."""
    known = {}
    for name in names:
        try:
            known[name] = pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    return known


def _not_taken(module: AnsibleModule) -> bool:
    """Whether systemd has yet to read a drop-in, of this run or of one that was cut off."""
    out = module.run_command(["systemctl", "show", "user-*.slice", "--property=NeedDaemonReload"])[1]
    return "NeedDaemonReload=yes" in out


def main() -> None:
    """Write the drop-ins that differ, remove those of accounts that are exempt no more, reload systemd."""
    arguments: dict[str, Any] = {
        "memory": {"type": "str", "required": True},
        "swap": {"type": "str", "required": True},
        "processes": {"type": "int", "required": True},
        "cpus": {"type": "float", "default": 0},
        "exempt": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    before, after = present(_UNITS), drop_ins(module.params, _ids(module.params["exempt"]))
    differing = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    changed = bool(differing)
    for name, text in after.items():
        changed |= keep(module, _UNITS / name, text)
    if not module.check_mode:
        for name in before.keys() - after.keys():
            (_UNITS / name).unlink()
        if differing or _not_taken(module):
            module.run_command(["systemctl", "daemon-reload"], check_rc=True)
    module.exit_json(
        changed=changed,
        deploy_manages={"files": left(_UNITS / name for name in after)},
        diff=[
            {
                "before": before.get(name, ""),
                "after": after.get(name, ""),
                "before_header": str(_UNITS / name),
                "after_header": str(_UNITS / name),
            }
            for name in differing
        ],
    )


if __name__ == "__main__":
    main()

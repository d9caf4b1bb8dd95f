#!/usr/bin/python
"""Ansible module: limits of space and files on file systems that have quotas turned on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.given import given, remember
from ansible.module_utils.quota_table import (
    Limits,
    change_command,
    how_to_turn_on,
    of_former_accounts,
    report_command,
    reported,
    together,
    wanted,
    with_former,
)

DOCUMENTATION = r"""
module: quota_limits
short_description: Limits of space and files on file systems that have quotas turned on
description:
  - Sets the limits that differ from what is declared, and takes away those that it set and that are declared
    no more; an account of the host that is still there gets those of each_user, where there are such.
    Limits of other names are left alone, and so are those of a file system that is not declared.
  - Refuses a file system on which quotas are off, and says how to turn them on; that needs it unmounted.
options:
  filesystems:
    description: The file systems; see the role's argument specification for their keys.
    type: list
    elements: dict
    required: true
  accounts:
    description: The users that the limits of each_user are for.
    type: list
    elements: str
    default: []
author: [the maintainers of this project]
"""

RETURN = r"""
actions:
  description: The commands that were run, or would be in check mode.
  type: list
  returned: always
"""

_NONE = Limits()
_REMEMBERED = "quotas"


def _report(module: AnsibleModule, kind: str, path: str) -> dict[tuple[str, str], Limits]:
    code, out, err = module.run_command(report_command(kind, path))
    if code != 0:
        module.fail_json(
            msg=f"{path} has no {kind} quotas: {(err or out).strip().rstrip('.')}. {how_to_turn_on(path)}"
        )
    return reported(kind, out)


def main() -> None:
    """Ask, compare, set."""
    arguments: dict[str, Any] = {
        "filesystems": {"type": "list", "elements": "dict", "required": True},
        "accounts": {"type": "list", "elements": "str", "default": []},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    commands, before, after = [], "", ""
    declared = {
        filesystem["path"]: wanted(filesystem, module.params["accounts"])
        for filesystem in module.params["filesystems"]
    }
    known = given(_REMEMBERED)
    if not module.check_mode:
        remember(_REMEMBERED, together(known, declared))
    lines = Path("/etc/passwd").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    own = {line.partition(":")[0] for line in lines}
    kept = of_former_accounts(module.params["filesystems"], known, own)
    for path, limits in with_former(declared, known, kept).items():
        present: dict[tuple[str, str], Limits] = {}
        for kind in sorted({kind for kind, _ in limits}):
            present |= _report(module, kind, path)
        for (kind, name), new in limits.items():
            old = present.get((kind, name), _NONE)
            if old != new:
                commands.append(change_command(kind, name, new, path))
                before += f"{path} {kind} {name} {old}\n"
                after += f"{path} {kind} {name} {new}\n"
    if not module.check_mode:
        for command in commands:
            code, out, err = module.run_command(command)
            if code != 0:
                module.fail_json(msg=f"{' '.join(command)}: {(err or out).strip()}")
        former = {path: keys for path, keys in known.items() if path not in declared}
        remember(_REMEMBERED, together(former, declared))
    module.exit_json(
        changed=bool(commands),
        actions=[" ".join(command) for command in commands],
        diff={"before": before, "after": after},
    )


if __name__ == "__main__":
    main()

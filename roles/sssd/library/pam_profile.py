#!/usr/bin/python
"""Ansible module: a profile of pam-auth-update that is there and in force."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: pam_profile
short_description: A profile of pam-auth-update that is there and in force
description:
  - Writes the profile and has pam-auth-update put its lines into /etc/pam.d/common-*, as packages do.
  - Where these files were edited by hand, pam-auth-update leaves them alone, and the module fails.
options:
  name:
    description: The profile's file below /usr/share/pam-configs.
    type: str
    required: true
  text:
    description: Its text; see pam-auth-update(8).
    type: str
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The profile.
  type: dict
  returned: always
"""

_PROFILES = Path("/usr/share/pam-configs")
_ENABLED = Path("/var/lib/pam")
_IN_FORCE = Path("/etc/pam.d")
_KINDS = ("account", "session")
"""Of the kinds of lines those that stay as they are written; others are given numbers."""


def is_in_force(name: str, text: str) -> bool:
    """Whether pam-auth-update has taken a profile, as it is now, and none that it excludes."""
    taken = text_of(_ENABLED / "account")
    excluded = " ".join(line.partition(":")[2] for line in text.splitlines() if line.startswith("Conflicts:"))
    if f"Module: {name}\n" not in taken or any(f"Module: {one}\n" in taken for one in excluded.split()):
        return False
    return all(
        set(lines_of(text, kind.capitalize()))
        <= {_plain(line.removeprefix(kind)) for line in text_of(_IN_FORCE / f"common-{kind}").splitlines()}
        for kind in _KINDS
    )


def lines_of(text: str, field: str) -> list[str]:
    """The lines of a profile's field, which are indented below it."""
    rest = text.partition(f"\n{field}:\n")[2].splitlines()
    return [_plain(line) for line in itertools.takewhile(lambda line: line[:1].isspace(), rest)]


def _plain(line: str) -> str:
    return " ".join(line.split())


def main() -> None:
    """Compare, write, have it put into force, and look whether it is."""
    arguments: dict[str, Any] = {
        "name": {"type": "str", "required": True},
        "text": {"type": "str", "required": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    name, text = module.params["name"], module.params["text"]
    path = _PROFILES / name
    before = text_of(path)
    changed = keep(module, path, text)
    if before != text or not is_in_force(name, text):
        changed = True
        if not module.check_mode:
            module.run_command(
                ["pam-auth-update", "--package", "--enable", name],
                environ_update={"DEBIAN_FRONTEND": "noninteractive"},
                check_rc=True,
            )
            if not is_in_force(name, text):
                module.fail_json(
                    msg=f"pam-auth-update did not put {path} into force: /etc/pam.d/common-* were edited by "
                    "hand. Look at them, then take what packages make: pam-auth-update --force"
                )
    module.exit_json(
        changed=changed,
        deploy_manages={"files": left([path])},
        diff={"before": before, "after": text, "before_header": str(path), "after_header": str(path)},
    )


if __name__ == "__main__":
    main()

#!/usr/bin/python
"""Ansible module: the keys of auth/slurm that a host has."""

from __future__ import annotations

import grp
import pwd
import stat
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import replace_file
from ansible.module_utils.slurm_key_set import FILE, keys_of, staged, written

DOCUMENTATION = r"""
module: slurm_keys
short_description: The keys of auth/slurm that a host has
description:
  - Keeps slurm.jwks. A new key comes in two stages, the second of which begins on no host before the daemons
    of all have read the first. First both keys are there, and the one of before is signed with. Then the new
    one is signed with, and the one of before has an end.
options:
  key:
    description: The key.
    type: str
    required: true
  stage:
    description: Whether the key is to be believed (C(accept)), or signed with as well (C(sign)).
    type: str
    choices: [accept, sign]
    required: true
  overlap:
    description: Seconds for which the key of before is believed once the new one is signed with.
    type: int
    default: 300
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: What is recorded of the host, by kind.
  type: dict
  returned: always
"""

_MODE = 0o600


def ids_of_slurm() -> tuple[int, int]:
    """Whose the file is."""
    return pwd.getpwnam("slurm").pw_uid, grp.getgrnam("slurm").gr_gid


def is_private() -> bool:
    """Whether it is slurm's alone."""
    found = FILE.stat()
    return (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (*ids_of_slurm(), _MODE)


def main() -> None:
    """Compare, and write it whole."""
    arguments: dict[str, Any] = {
        "key": {"type": "str", "required": True, "no_log": True},
        "stage": {"type": "str", "choices": ["accept", "sign"], "required": True},
        "overlap": {"type": "int", "default": 300},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    given = module.params
    is_there = FILE.exists()
    there = keys_of(FILE.read_text(encoding="utf-8", errors="replace")) if is_there else []
    wanted = staged(there, given["key"], given["stage"], given["overlap"], int(time.time()))
    changed = wanted != there or not is_private()
    if changed and not module.check_mode:
        replace_file(FILE, written(wanted).encode(), _MODE, ids_of_slurm())
    module.exit_json(changed=changed, deploy_manages={"files": [str(FILE)]})


if __name__ == "__main__":
    main()

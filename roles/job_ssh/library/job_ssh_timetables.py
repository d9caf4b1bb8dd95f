#!/usr/bin/python
"""Ansible module: who may have something started by cron and at, where the site does not say so itself."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.root_file import keep, left, text_of

DOCUMENTATION = r"""
module: job_ssh_timetables
short_description: Who may have something started by cron and at
description:
  - Keeps cron.allow and at.allow, without which everybody may. A list that is there and was not made here is
    the site's own, and stays as it is.
options:
  users:
    description: Who may, beside root.
    type: list
    elements: str
    default: []
  state:
    description: Whether there are lists; with C(absent) those that were made here go.
    type: str
    choices: [present, absent]
    default: present
author: [the maintainers of this project]
"""

RETURN = r"""
deploy_manages:
  description: The lists.
  type: dict
  returned: always
"""

_LISTS = (Path("/etc/cron.allow"), Path("/etc/at.allow"))
_HEAD = "# Made by deploy; changes made here are undone by the next run. Without this line it stays.\n"
"""A name that nobody has, to cron and at."""


def main() -> None:
    """Compare, write or remove, each only where it is needed."""
    module = AnsibleModule(
        argument_spec={
            "users": {"type": "list", "elements": "str", "default": []},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    before = {path: text_of(path) for path in _LISTS}
    own = [path for path in _LISTS if not path.exists() or before[path].startswith(_HEAD)]
    is_wanted = module.params["state"] == "present"
    names = dict.fromkeys(["root", *module.params["users"]])
    text = _HEAD + "".join(f"{name}\n" for name in names) if is_wanted else ""
    changed = False
    for path in own:
        if is_wanted:
            changed |= keep(module, path, text)
        elif path.exists():
            changed = True
            if not module.check_mode:
                path.unlink()
    module.exit_json(
        changed=changed,
        # A list that the site made instead of ours is nothing left over.
        deploy_manages={"files": left(_LISTS) if is_wanted else {}},
        diff=[
            {
                "before": before[path],
                "after": text,
                "before_header": str(path),
                "after_header": str(path),
            }
            for path in own
            if before[path] != text
        ],
    )


if __name__ == "__main__":
    main()

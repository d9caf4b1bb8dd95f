#!/usr/bin/python
"""Ansible module: settings of sssd with which the directory answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.ldap_question import is_known, refusal
from ansible.module_utils.root_file import keep, text_of

DOCUMENTATION = r"""
module: sssd_settings
short_description: Settings of sssd with which the directory answered
description:
  - Writes sssd's file and the authority of the servers' certificates. Where one of them differs, a server of
    the directory has to answer first as sssd would ask it, over TLS; when none does, nothing is changed
    and the answer says why.
  - What is as it was is not asked again, so that a directory that is away stops no run.
options:
  text:
    description: The text of sssd's file.
    type: str
    required: true
  mode:
    description: The mode of that file.
    type: str
    default: "0600"
  servers:
    description: The servers, as C(ldap://) or C(ldaps://).
    type: list
    elements: str
    required: true
  base:
    description: The entry below which everybody is.
    type: str
    required: true
  name:
    description: As whom sssd asks; empty for nobody.
    type: str
    default: ""
  password:
    description: The password of that name.
    type: str
    default: ""
  authority:
    description: Certificates as PEM text; empty for those that the host trusts.
    type: str
    default: ""
author: [the maintainers of this project]
"""

RETURN = r"""
changed:
  description: Whether a file differed.
  type: bool
  returned: always
refused:
  description: Why no server can be used; nothing was changed then. Empty where one can.
  type: str
  returned: always
deploy_manages:
  description: The files.
  type: dict
  returned: where none was refused
"""

_FILE = Path("/etc/sssd/sssd.conf")
_AUTHORITY = Path("/etc/sssd/directory-ca.crt")
_PUBLIC = 0o644


def main() -> None:
    """Compare, ask, write."""
    arguments: dict[str, Any] = {
        "text": {"type": "str", "required": True, "no_log": True},
        "mode": {"type": "str", "default": "0600"},
        "servers": {"type": "list", "elements": "str", "required": True},
        "base": {"type": "str", "required": True},
        "name": {"type": "str", "default": ""},
        "password": {"type": "str", "default": "", "no_log": True},
        "authority": {"type": "str", "default": ""},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    told = module.params
    wanted = {_AUTHORITY: told["authority"], _FILE: told["text"]}
    if any(text_of(path) != text for path, text in wanted.items()):
        asked = (told["base"], told["name"], told["password"], told["authority"])
        refusals: list[str] = []
        for server in told["servers"]:
            # In a check the name of a host of the cluster may not be known yet, as a run makes it.
            if module.check_mode and not is_known(server):
                break
            reason = refusal(server, *asked)
            if not reason:
                break
            refusals.append(reason)
        else:
            # A failure of a task whose result is hidden would say nothing of why.
            module.exit_json(changed=False, refused="; ".join(refusals))
    changed = False
    for path, text in wanted.items():
        if text:
            changed |= keep(module, path, text, int(told["mode"], 8) if path == _FILE else _PUBLIC)
        elif path.exists():
            changed = True
            if not module.check_mode:
                path.unlink()
    module.exit_json(changed=changed, refused="", deploy_manages={"files": [str(path) for path in wanted]})


if __name__ == "__main__":
    main()

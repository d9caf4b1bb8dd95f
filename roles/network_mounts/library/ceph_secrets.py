#!/usr/bin/python
"""Ansible module: the keys of Ceph's users as files that mount.ceph(8) reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import keep_names
from ansible.module_utils.given import given, remember
from ansible.module_utils.root_file import give_to_root, keep, left, text_of

DOCUMENTATION = r"""
module: ceph_secrets
short_description: The keys of Ceph's users as files
description:
  - Writes the key of each user to USER.secret, for root alone. A file that it wrote is removed when its
    user is declared no more; files of others stay.
options:
  path:
    description: The directory of the files. In check mode it may be missing.
    type: path
    default: /etc/ceph
  secrets:
    description: The keys by user.
    type: dict
    required: true
author: [the maintainers of this project]
"""

RETURN = r"""
removed:
  description: Users whose files were removed, or would be in check mode.
  type: list
  returned: always
deploy_manages:
  description: C(files), the keys.
  type: dict
  returned: always
"""

_REMEMBERED = "ceph_secrets"
_MODE = 0o600


def path_of(directory: Path, user: str) -> Path:
    """Where the key of a user lies."""
    return directory / f"{user}.secret"


def differing(directory: Path, secrets: Mapping[str, str]) -> set[str]:
    """Users whose file has to be written."""
    return {user for user, text in secrets.items() if text_of(path_of(directory, user)) != text}


def former(directory: Path, secrets: Mapping[str, str], known: set[str]) -> list[str]:
    """Users that are declared no more, and whose files were written for them and are still there."""
    return sorted(user for user in known - set(secrets) if path_of(directory, user).exists())


def main() -> None:
    """Write what differs, remove what was written before and is declared no more."""
    arguments: dict[str, Any] = {
        "path": {"type": "path", "default": "/etc/ceph"},
        "secrets": {"type": "dict", "required": True, "no_log": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    directory = Path(module.params["path"])
    secrets = {str(user): f"{key}\n" for user, key in module.params["secrets"].items()}
    known = set(given(_REMEMBERED).get("users", []))
    gone = former(directory, secrets, known)
    new = differing(directory, secrets)
    changed = bool(new or gone)
    if not module.check_mode:
        remember(_REMEMBERED, {"users": sorted(known | new)})
    for user, text in secrets.items():
        path = path_of(directory, user)
        changed = (
            keep(module, path, text, _MODE) if user in new else give_to_root(module, path, _MODE)
        ) or changed
    if not module.check_mode:
        for user in gone:
            path_of(directory, user).unlink()
        if gone:
            keep_names(directory)
        remember(_REMEMBERED, {"users": sorted((known | new) & set(secrets))})
    files = left(path_of(directory, user) for user in secrets)
    module.exit_json(changed=changed, removed=gone, deploy_manages={"files": files})


if __name__ == "__main__":
    main()

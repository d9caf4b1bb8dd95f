#!/usr/bin/python
"""Ansible module: the accounts of the registry, as nginx reads them."""

from __future__ import annotations

import ctypes
import grp
import hmac
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.durable import replace_file

DOCUMENTATION = r"""
module: registry_accounts
short_description: The accounts of the registry, as nginx reads them
description:
  - Keeps a file of names and hashed passwords. The hash of a password that is still the same stays, so that
    the file changes only when an account does.
options:
  path:
    description: The file, which its group may read.
    type: path
    required: true
  group:
    description: The group.
    type: str
    required: true
  accounts:
    description: Accounts, each with C(name) and C(password).
    type: list
    elements: dict
    required: true
author: [the maintainers of this project]
"""

RETURN = r""" # """

_MODE = 0o640
_KIND = b"$6$"  # SHA-512, which every release's nginx takes


class Hashes:
    """What the system's libcrypt makes of passwords; Python's own module for it is gone since 3.13."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcrypt.so.1")
        for function in (self._library.crypt, self._library.crypt_gensalt):
            function.restype = ctypes.c_char_p

    def made(self, password: str) -> str:
        """A new hash, each with a salt of its own."""
        salt = self._library.crypt_gensalt(_KIND, ctypes.c_ulong(0), None, 0)
        return self._with(password, salt)

    def fits(self, password: str, known: str) -> bool:
        """Whether a hash is of this password."""
        return known.startswith(_KIND.decode()) and hmac.compare_digest(
            self._with(password, known.encode()), known
        )

    def _with(self, password: str, salt: bytes) -> str:
        found: bytes | None = self._library.crypt(password.encode(), salt)
        return (found or b"*").decode()


def known(text: str) -> dict[str, str]:
    """Hashes by name, as the file has them."""
    lines = (line.partition(":") for line in text.splitlines())
    return {name: hashed for name, _, hashed in lines if hashed}


def wanted(accounts: list[dict[str, str]], had: dict[str, str], hashes: Hashes) -> str:
    """The text of the file."""
    kept = {
        each["name"]: had[each["name"]]
        if each["name"] in had and hashes.fits(each["password"], had[each["name"]])
        else hashes.made(each["password"])
        for each in accounts
    }
    return "".join(f"{name}:{hashed}\n" for name, hashed in sorted(kept.items()))


def main() -> None:
    """Compare, write."""
    arguments: dict[str, Any] = {
        "path": {"type": "path", "required": True},
        "group": {"type": "str", "required": True},
        "accounts": {"type": "list", "elements": "dict", "required": True, "no_log": True},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    path, group = Path(module.params["path"]), grp.getgrnam(module.params["group"]).gr_gid
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    after = wanted(module.params["accounts"], known(before), Hashes())
    state = path.stat() if path.exists() else None
    is_so = state is not None and (state.st_mode & 0o7777, state.st_uid, state.st_gid) == (_MODE, 0, group)
    changed = before != after or not is_so
    if changed and not module.check_mode:
        replace_file(path, after.encode(), _MODE, (0, group))
    module.exit_json(changed=changed)


if __name__ == "__main__":
    main()

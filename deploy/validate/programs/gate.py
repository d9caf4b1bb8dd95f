"""Whether PAM lets an admin in on a compute node, asked as sshd asks it, without a login. Changes nothing.

``ask`` is called with the accounts and groups of admins and returns ``{"admins": {account: reason}}``: why it
would be refused, empty when it would not.
"""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
import sys
from typing import Any

_ASKED = 8
"""Of a large group the first by name speak for the others."""
_SECONDS = 20

# A process of its own, because PAM modules may change the process that asks. pam_slurm_adopt expects PAM's
# functions to be there for all.
_ACCOUNT = """
import ctypes, sys
talk = ctypes.CFUNCTYPE(*[ctypes.c_int] * 2, *[ctypes.c_void_p] * 3)
class Conversation(ctypes.Structure):
    _fields_ = [("function", talk), ("data", ctypes.c_void_p)]
pam = ctypes.CDLL("libpam.so.0", mode=ctypes.RTLD_GLOBAL)
handle, talker = ctypes.c_void_p(), Conversation(talk(lambda *_: 19), None)
begun = pam.pam_start(b"sshd", sys.argv[1].encode(), ctypes.byref(talker), ctypes.byref(handle))
code = begun or pam.pam_acct_mgmt(handle, 0x8000)
pam.pam_strerror.restype = ctypes.c_char_p
print(pam.pam_strerror(handle, code).decode())
sys.exit(code != 0)
"""


def members(groups: list[str]) -> list[str]:
    """The accounts of groups that this host names, those for whom one is the first group included."""
    numbers, found = set(), set()
    for name in groups:
        try:
            group = grp.getgrnam(name)
        except KeyError:
            continue
        numbers.add(group.gr_gid)
        found.update(group.gr_mem)
    return sorted(found | {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid in numbers})


def exists(account: str) -> bool:
    """Whether this host knows the account."""
    try:
        pwd.getpwnam(account)
    except KeyError:
        return False
    return True


def reason(account: str) -> str:
    """Why PAM would refuse an account at sshd's door; empty when it would not."""
    try:
        done = subprocess.run(
            (sys.executable or "/usr/bin/python3", "-I", "-c", _ACCOUNT, account),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"PAM gives no answer within {_SECONDS} s"
    lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
    return "" if done.returncode == 0 else (lines or [f"exit code {done.returncode}"])[-1]


def ask(arguments: dict[str, Any]) -> dict[str, Any]:
    """The account that is at work here, those that are named, and some of the groups'."""
    own = [os.environ.get("SUDO_USER") or "", arguments["connecting"], *arguments["users"]]
    asked = [*own, *[name for name in members(arguments["groups"]) if name not in own][:_ASKED]]
    return {"admins": {name: reason(name) for name in dict.fromkeys(asked) if name and exists(name)}}

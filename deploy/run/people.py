"""What deploy asks hosts about people: who charges what in Slurm, who somebody is, his rights and keys.

Sent as text over ssh and run as root, with the standard library of Python 3.9 alone.
"""

from __future__ import annotations

import base64
import binascii
import grp
import hashlib
import json
import os
import pwd
import re
import time
from pathlib import Path

from deploy.run.host_commands import last_line, runner, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_BROUGHT = Path("/var/lib/slurm_groups/memberships.json")
_LOCAL = Path("/etc/passwd")
_LOWEST_ID, _FIRST_RESERVED_ID, _LAST_RESERVED_ID = 1000, 60000, 65535
_LONGEST = 1 << 18
"""Nobody has so many keys."""
_TYPE = re.compile(r"(?:ssh|ecdsa|sk)-[\w.@-]+")
_OPTIONS = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+')
_OPTION = re.compile(r'(?:[^\s",]|"(?:[^"\\]|\\.)*")+')
_MAY = "may run the following commands"
_KEYS = ("authorized_keys", "authorized_keys2")
_DAY = 86400
_run = runner(20)
_read = runner(5)


def charged(cluster: str) -> dict[str, Any]:
    """A cluster's memberships, levels and managers; which of the memberships groups brought or closed."""
    columns = "format=account,user,partition,qos,defaultqos,maxsubmitjobs"
    found: dict[str, Any] = {"memberships": [], "users": {}, "managers": {}, "brought": {}}
    for row in _rows("associations", columns, f"cluster={cluster}"):
        if row[1]:
            found["memberships"].append(row)
    for user, default, level in _rows("users", "format=user,defaultaccount,adminlevel"):
        found["users"][user] = [default, level.lower()]
    for account, names in _rows("accounts", "format=account,coordinators", "withcoord"):
        found["managers"][account] = [name for name in names.split(",") if name]
    try:
        made = json.loads(_BROUGHT.read_text(encoding="utf-8"))
    except FileNotFoundError:
        made = {}
    for account, each in made.items():
        found["brought"][account] = [*each["open"], *each["closed"]]
    return found


class _SlurmSilentError(Exception):
    """Why sacctmgr did not answer."""


def _rows(entity: str, *words: str) -> Iterator[list[str]]:
    said, succeeded = _run("sacctmgr", "--noheader", "--parsable2", "show", entity, *words[1:], words[0])
    if not succeeded:
        raise _SlurmSilentError(said.strip()[-300:])
    for line in said.splitlines():
        yield line.split("|")


def known(names: list[str], groups: list[str]) -> dict[str, Any]:
    """Who ``names``, members of ``groups`` and the people of this host are, what they may, their keys."""
    local = {line.split(":")[0] for line in _LOCAL.read_text(encoding="utf-8").splitlines()}
    wanted = dict.fromkeys(names)
    wanted.update(dict.fromkeys(name for group in groups for name in _members(group)))
    wanted.update(dict.fromkeys(sorted(name for name in local if _is_a_person(name))))
    return {name: _person(name, is_local=name in local) for name in wanted}


def _members(group: str) -> list[str]:
    try:
        return grp.getgrnam(group).gr_mem
    except KeyError:
        return []


def _is_a_person(name: str) -> bool:
    try:
        uid = pwd.getpwnam(name).pw_uid
    except KeyError:
        return False
    return uid >= _LOWEST_ID and not _FIRST_RESERVED_ID <= uid <= _LAST_RESERVED_ID


def _person(name: str, *, is_local: bool) -> dict[str, Any]:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return {"source": "nowhere"}
    gids = os.getgrouplist(name, entry.pw_gid)
    groups = []
    for gid in gids:
        try:
            groups.append(grp.getgrgid(gid).gr_name)
        except KeyError:
            groups.append(str(gid))
    at_home, unread = _authorized(entry, gids)
    said, _ = _run("sudo", "--non-interactive", "--list", f"--other-user={name}")
    return {
        "source": "local" if is_local else "directory",
        "uid": entry.pw_uid,
        "name": entry.pw_gecos.split(",")[0],
        "shell": entry.pw_shell,
        "groups": groups,
        "sudo": _MAY in said,
        "closed": _is_closed(name) if is_local else False,
        "keys": [*keys(at_home), *(() if is_local else keys(_of_directory(name)))],
        "keys_unread": unread,
    }


def _is_closed(name: str) -> bool:
    """Whether the account has expired (shadow(5): its day), as one has that deploy closed."""
    said, _ = _run("getent", "shadow", name)
    day = "".join(said.strip().split(":")[7:8])
    return day.isdigit() and int(day) <= time.time() // _DAY


def _authorized(entry: pwd.struct_passwd, gids: list[int]) -> tuple[str, str]:
    """The keys that a home has, as sshd looks for them, and why they cannot be told.

    As the owner: root is nobody to a file server, and where a link leads is the owner's to read.
    """
    rights = (f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", f"--groups={','.join(map(str, gids))}")
    found, trouble = "", ""
    for name in _KEYS:
        path = f"{entry.pw_dir}/.ssh/{name}"
        said, succeeded = _read("setpriv", *rights, "--", "head", f"--bytes={_LONGEST}", "--", path)
        if succeeded:
            found += f"{said}\n"
        elif not said.strip().endswith("No such file or directory"):
            trouble = f"{path}: {last_line(said).rpartition(': ')[2] or 'no answer'}"
    return found, trouble


def _of_directory(name: str) -> str:
    said, succeeded = _run("/usr/bin/sss_ssh_authorizedkeys", name)
    return said if succeeded else ""


def keys(text: str) -> Iterator[dict[str, Any]]:
    """The keys of a text, each with its fingerprint, its restrictions and its comment."""
    for line in map(str.strip, text.splitlines()):
        options = "" if not line or _TYPE.fullmatch(line.split()[0]) else _first(line)
        words = line[len(options) :].split(None, 2)
        if len(words) > 1 and _TYPE.fullmatch(words[0]) and (print_ := _fingerprint(words[1])):
            yield {
                "type": words[0],
                "fingerprint": print_,
                "comment": words[2] if len(words) > 2 else "",  # noqa: PLR2004 - type, key, comment
                "restrictions": _OPTION.findall(options),
            }


def _first(line: str) -> str:
    """The first word of a line, in which quotes hold spaces."""
    match = _OPTIONS.match(line)
    return match.group() if match else ""


def _fingerprint(text: str) -> str:
    """As ssh-keygen -l writes it; nothing where it is no key."""
    try:
        digest = hashlib.sha256(base64.b64decode(text, validate=True)).digest()
    except (binascii.Error, ValueError):
        return ""
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def main(verb: str, arguments: dict[str, Any]) -> None:
    """Does the verb, and answers."""
    verbs: dict[str, Any] = {"charged": charged, "known": known}
    try:
        tell(verbs[verb](**arguments))
    except _SlurmSilentError as problem:
        tell({"trouble": str(problem)})

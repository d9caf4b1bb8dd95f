"""What is wrong with declared groups and accounts, whatever the host has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

SLURM = "slurm"

_LOWEST_ID = 1000
_FIRST_RESERVED_ID = 60000
_LAST_RESERVED_ID = 65535
_NAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_KEY = re.compile(r"[^\r\n]+")
_NOBODYS = frozenset(
    {"root", SLURM, "adm", "backup", "bin", "daemon", "games", "grafana", "mail", "man", "munge", "mysql"}
    | {"news", "nobody", "nogroup", "prometheus", "proxy", "shadow", "sshd", "staff", "sudo", "sync", "sys"}
    | {"systemd-network", "tty", "utmp", "uucp", "www-data", "_chrony"}
)
"""Accounts and groups of the system (base-passwd) and of the packages that deploy installs."""


def problems(groups: Sequence[Mapping[str, Any]], accounts: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with the declarations themselves."""
    found = [*_twice(groups, "gid"), *_twice(accounts, "uid")]
    for entry, identity in [*((group, "gid") for group in groups), *((user, "uid") for user in accounts)]:
        name, number = entry["name"], entry[identity]
        if not _NAME.fullmatch(name):
            found.append(f"{name!r} is not a name: lower case letters, digits, - and _, at most 32")
        if name in _NOBODYS:
            found.append(f"{name} is not an account of a person")
        if number < _LOWEST_ID or _FIRST_RESERVED_ID <= number <= _LAST_RESERVED_ID:
            found.append(f"{name}: {identity} {number} belongs to the distribution; use 1000 to 59999")
    homes = {account["name"]: account.get("home") or f"/home/{account['name']}" for account in accounts}
    found += [
        f"{name}: its home {home} is another's, too"
        for name, home in homes.items()
        if list(homes.values()).count(home) > 1
    ]
    for account in accounts:
        texts = [account["comment"], account["shell"], account.get("home") or "/"]
        if any(character in text for text in texts for character in ":\n"):
            found.append(f"{account['name']}: comment, shell and home must not have a colon or a line break")
        if any(not _KEY.fullmatch(key) for key in account["ssh_keys"]):
            found.append(f"{account['name']}: an ssh key is empty or has a line break")
    return found


def _twice(entries: Sequence[Mapping[str, Any]], identity: str) -> list[str]:
    names = Counter(entry["name"] for entry in entries)
    numbers = Counter(entry[identity] for entry in entries if entry["state"] == "present")
    return [
        *(f"{name} is declared {count} times" for name, count in names.items() if count > 1),
        *(f"{identity} {number} is declared {count} times" for number, count in numbers.items() if count > 1),
    ]

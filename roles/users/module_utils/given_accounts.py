"""What accounts were given that they are declared with no more, and the commands that take it away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Entry = Mapping[str, Any]
Given = Mapping[str, Any]
"""``accounts``: by name the further ``groups`` and the ``home``; ``closed``: accounts that were closed."""


class Host(NamedTuple):
    """What a host has: the members of its groups, its accounts, and the one that deploy came in as."""

    members: Mapping[str, Sequence[str]]
    users: frozenset[str]
    own: str = ""
    foreign: frozenset[str] = frozenset()
    """Accounts that were given something here and that a directory alone has."""


def giving(accounts: Sequence[Entry]) -> dict[str, Any]:
    """What the declared accounts are given, as it is remembered."""
    return {
        user["name"]: {"groups": list(user["groups"]), "home": user.get("home") or f"/home/{user['name']}"}
        for user in accounts
        if user["state"] == "present"
    }


def former(accounts: Sequence[Entry], before: Given, host: Host) -> list[str]:
    """Accounts that were declared once, are not at all any more, and are still there.

    So are those of a directory that are declared absent: no command of the host removes them.
    The account that deploy comes in as is none of them: taking its rights would end deploy's own.
    """
    declared, now = {user["name"] for user in accounts}, giving(accounts)
    return [
        name
        for name in before.get("accounts", {})
        if name != host.own
        and ((name in host.users and name not in declared) or (name in host.foreign and name not in now))
    ]


def revocations(accounts: Sequence[Entry], before: Given, host: Host) -> Iterator[list[str]]:
    """The commands: groups are left, accounts that are declared no more closed, those that are again opened.

    A closed account keeps its files and its id; nobody can log in, by whatever means (shadow(5): expiration).
    """
    now = giving(accounts)
    gone = [name for name in former(accounts, before, host) if name in host.users]
    for name, was in before.get("accounts", {}).items():
        kept = now.get(name, {"groups": []})["groups"]
        for group in was["groups"] if name in now or name != host.own else ():
            if group not in kept and name in host.members.get(group, ()):
                yield ["gpasswd", "--delete", name, group]
    closed = before.get("closed", [])
    for name in gone:
        if name not in closed:
            yield ["usermod", "--expiredate", "1", name]
    for name in closed:
        if name in now and name in host.users:
            yield ["usermod", "--expiredate", "", name]


def remembered(accounts: Sequence[Entry], before: Given, host: Host) -> dict[str, Any]:
    """What is to be remembered once all of it was done."""
    gone = former(accounts, before, host)
    own = {name: was for name, was in before.get("accounts", {}).items() if name == host.own}
    return {
        "accounts": {
            **own,
            **giving(accounts),
            **{name: before["accounts"][name] | {"groups": []} for name in gone},
        },
        "closed": [name for name in gone if name in host.users],
    }


def meanwhile(accounts: Sequence[Entry], before: Given) -> dict[str, Any]:
    """What is to be remembered while it is being done: all that was given, and all that will be."""
    known = dict(before.get("accounts", {}))
    for name, new in giving(accounts).items():
        groups = [*known.get(name, {"groups": []})["groups"], *new["groups"]]
        known[name] = {**new, "groups": list(dict.fromkeys(groups))}
    return {"accounts": known, "closed": before.get("closed", [])}

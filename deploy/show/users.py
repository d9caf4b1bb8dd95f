"""Who may do what on a cluster, as text and for programs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from deploy.engine.users import Key, Membership, Person
from deploy.site.node_lists import fold

_EXPIRY = re.compile(r'expiry-time="?(\d{4})(\d{2})(\d{2})\d*Z?"?', re.IGNORECASE)


def lines(people: Sequence[Person], now: datetime) -> Iterator[str]:
    """A paragraph for each person."""
    for person in people:
        where = (
            "no host knows the name" if person.source == "nowhere" else f"{person.source}, uid {person.uid}"
        )
        named = f", {person.full_name}" if person.full_name else ""
        yield f"{person.name}  ({where}{named})"
        for membership in person.memberships:
            yield f"  account   {_account(membership)}"
        if not person.memberships:
            yield "  account   none: no job"
        if person.level != "none":
            yield f"  slurm     {person.level} of the accounting database"
        if person.sudo:
            yield "  sudo      yes"
        yield f"  login     {fold(person.logins) if person.logins else 'no'}: {person.login_why}"
        for key in person.keys:
            yield f"  key       {_key(key, now)}"
        if person.keys_unread:
            yield f"  key       not readable: {person.keys_unread}"


def _account(membership: Membership) -> str:
    marks = [
        *(["default"] if membership.is_default else []),
        *(["manager"] if membership.is_manager else []),
        *(["closed: submits no job"] if membership.is_closed else []),
        f"QOS {', '.join(membership.qos) or 'none'}",
        f"by {membership.why}",
    ]
    return f"{membership.account} ({'; '.join(marks)})"


def _key(key: Key, now: datetime) -> str:
    words = [key.type, key.fingerprint, key.comment, *key.restrictions]
    over = "EXPIRED" if is_expired(key.restrictions, now) else ""
    return "  ".join(word for word in (*words, over) if word)


def is_expired(restrictions: Sequence[str], now: datetime) -> bool:
    """Whether one of a key's restrictions says that it is over."""
    matches = (_EXPIRY.fullmatch(each) for each in restrictions)
    ends = ("-".join(match.groups()) for match in matches if match)
    return any(end <= now.date().isoformat() for end in ends)


def as_json(people: Sequence[Person], now: datetime) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {
            **asdict(person),
            "keys": [{**asdict(key), "is_expired": is_expired(key.restrictions, now)} for key in person.keys],
        }
        for person in people
    ]

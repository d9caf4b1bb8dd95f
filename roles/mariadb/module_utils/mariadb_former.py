"""What a database server holds that was declared before and is no more, and what takes it away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ansible.module_utils.mariadb_client import account as quoted
from ansible.module_utils.mariadb_client import text

Account = tuple[str, str]
"""A name and where it connects from, in small letters: MariaDB does not tell hosts apart by case."""

_SYSTEM = frozenset({"", "root", "mysql", "mariadb.sys", "debian-sys-maint"})
"""Accounts that the server or the distribution needs; they keep what they have."""


class Server(NamedTuple):
    """The accounts and databases that are declared, or that a server has."""

    accounts: frozenset[Account]
    databases: frozenset[str]

    @classmethod
    def of(cls, accounts: Iterable[Iterable[str]], databases: Iterable[str]) -> Server:
        """From lists, as they come from Ansible or from the server."""
        pairs = ((str(name), str(host).lower()) for name, host in accounts)
        return cls(frozenset(pairs), frozenset(map(str, databases)))


class Known(NamedTuple):
    """What was declared before: what was ``made`` for it, and accounts that were ``there`` already.

    Those of them that are declared no more were ``stripped`` of their privileges.
    """

    made: Server
    there: frozenset[Account]
    stripped: frozenset[Account]

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Known:
        """As it is remembered; nothing where nobody ever did."""
        made = Server.of(data.get("accounts", []), data.get("databases", []))
        return cls(made, *(Server.of(data.get(key, []), []).accounts for key in ("there", "stripped")))

    def as_data(self) -> dict[str, Any]:
        """As it is remembered."""
        return {
            "accounts": sorted(map(list, self.made.accounts)),
            "databases": sorted(self.made.databases),
            "there": sorted(map(list, self.there)),
            "stripped": sorted(map(list, self.stripped)),
        }


def noted(known: Known, declared: Server, present: Server) -> Known:
    """What is to be remembered before anything is made: all that was declared, and all that is now."""
    there = known.there | (declared.accounts & (present.accounts | known.stripped)) - known.made.accounts
    made = Server(
        known.made.accounts | (declared.accounts - there),
        known.made.databases | (declared.databases - present.databases),
    )
    return Known(made, there, known.stripped - declared.accounts)


def remaining(known: Known, declared: Server, present: Server) -> Known:
    """What is to be remembered afterwards: what is declared, and what stays until somebody removes it."""
    made = Server(
        known.made.accounts & declared.accounts,
        known.made.databases & (declared.databases | present.databases),
    )
    return Known(made, known.there & declared.accounts, _staying(known, declared, present))


def statements(known: Known, declared: Server, present: Server) -> Iterator[str]:
    """Accounts that were made are dropped, with their connections; others lose what they were given."""
    former = _removable(known.made.accounts - declared.accounts, present)
    for account in sorted(former):
        yield f"DROP USER {quoted(*account)}"
    others = {name for name, _ in present.accounts - former}
    for name in sorted({name for name, _ in former} - others):
        yield f"KILL USER {text(name)}"
    for account in sorted(_staying(known, declared, present) - known.stripped):
        yield f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM {quoted(*account)}"


def stays(known: Known, declared: Server, present: Server) -> Iterator[str]:
    """What is declared no more and is not for deploy to remove, and what to do about it."""
    for account in sorted(_staying(known, declared, present)):
        yield (
            f"the database account {quoted(*account)} is declared no more; it was there before, lost its "
            f'privileges and stays. To remove it: mariadb -e "DROP USER {quoted(*account)}"'
        )
    for name in sorted((known.made.databases - declared.databases) & present.databases):
        yield (
            f"the database {name} is declared no more and stays, with its data. To keep it declare it in "
            f"mariadb_databases; to remove it: mariadb -e 'DROP DATABASE `{name}`'"
        )


def _staying(known: Known, declared: Server, present: Server) -> frozenset[Account]:
    return _removable((known.there | known.stripped) - declared.accounts, present)


def _removable(accounts: frozenset[Account], present: Server) -> frozenset[Account]:
    return frozenset(account for account in accounts & present.accounts if account[0] not in _SYSTEM)

#!/usr/bin/python
"""Ansible module: the databases and accounts of a MariaDB server."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.mariadb_client import account as quoted_account
from ansible.module_utils.mariadb_client import lines, text

DOCUMENTATION = r"""
module: mariadb_content
short_description: The databases and accounts of a MariaDB server
description:
  - Asks the server on this machine, as root by its socket, and tells it what differs.
  - Makes databases and accounts, gives and takes privileges of accounts that are declared, removes the
    database C(test) and anonymous accounts. Everything else stays.
options:
  databases:
    description: Names of databases.
    type: list
    elements: str
    default: []
  users:
    description: Accounts, each with all of its privileges.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The account's name.
        type: str
        required: true
      host:
        description: Where the account connects from.
        type: str
        default: localhost
      password:
        description: Its password. Without one the system's account of the same name is let in by the socket.
        type: str
      privileges:
        description: What it may do, as in C(slurm_acct_db.*:ALL); several are separated by a slash.
        type: str
        required: true
author: [the maintainers of this project]
"""

RETURN = r"""
changes:
  description: What was changed, or would be, without passwords.
  type: list
  elements: str
  returned: always
"""

Grants = dict[str, frozenset[str]]
"""Privileges by what they are for, as in ``db.*``."""

_ALL = "ALL PRIVILEGES"
_OPTION = frozenset({"GRANT OPTION"})
_ALIASES = {
    "ALL": _ALL,
    "GRANT": "GRANT OPTION",
    "REPLICATION CLIENT": "BINLOG MONITOR",
    "REPLICA MONITOR": "SLAVE MONITOR",
    "REPLICATION REPLICA": "REPLICATION SLAVE",
    "REPLICATION REPLICA ADMIN": "REPLICATION SLAVE ADMIN",
    "CREATE TABLESPACES": "CREATE TABLESPACE",
    "DELETE VERSIONING ROWS": "DELETE HISTORY",
}
"""Other names of privileges, with those that the server shows (MariaDB Server Documentation, GRANT)."""
_PART = r"(?:`[^`]+`|[^`.\s]+)"
_PLACE = re.compile(rf"(?:(?:FUNCTION|PROCEDURE|PACKAGE|PACKAGE BODY) )?{_PART}\.{_PART}")
_PRIVILEGE = re.compile(r"[^,(]+(?:\([^)]*\))?")
_GRANT = re.compile(rf"GRANT (?P<privileges>.+?) ON (?P<place>{_PLACE.pattern}) TO (?P<rest>.*)")
_NATIVE = re.compile(
    r" IDENTIFIED (?:BY PASSWORD|VIA mysql_native_password USING) '(\*[0-9A-F]{40})'(?! OR\b)"
)
_SOCKET = re.compile(r" IDENTIFIED VIA unix_socket(?! OR\b)")


class Account(NamedTuple):
    """A name, and where it connects from."""

    name: str
    host: str

    def __str__(self) -> str:
        """As in statements."""
        return quoted_account(*self)


class Change(NamedTuple):
    """What is told to the server, and how it is shown: without passwords."""

    statement: str
    shown: str


def privileges(said: str) -> frozenset[str]:
    """The names in a list of privileges as the server shows them, with their columns."""
    return frozenset(_named(match[0]) for match in _PRIVILEGE.finditer(said) if match[0].strip()) - {"USAGE"}


def declared(said: str) -> Grants:
    """Privileges as in ``db.*:SELECT,INSERT/other.*:ALL``.

    Raises ValueError, with what is wrong, where it is something else.
    """
    grants: Grants = {}
    for part in said.split("/"):
        place, colon, names = part.strip().rpartition(":")
        if not colon or not _PLACE.fullmatch(place):
            message = f"{part!r}: want DATABASE.TABLE:PRIVILEGE,... as in slurm_acct_db.*:ALL"
            raise ValueError(message)
        place = place.replace("`", "")
        grants[place] = grants.get(place, frozenset()) | privileges(names)
    return grants


def granted(lines: list[str]) -> Grants:
    """Privileges as ``SHOW GRANTS`` tells them."""
    grants: Grants = {}
    for line in lines:
        if match := _GRANT.match(line):
            place = match["place"].replace("`", "")
            option = {"GRANT OPTION"} if re.search(r" WITH .*GRANT OPTION", match["rest"]) else set()
            grants[place] = grants.get(place, frozenset()) | privileges(match["privileges"]) | option
    return {place: names for place, names in grants.items() if names}


def is_let_in_so(account: str, password: str | None) -> bool:
    """Whether an account, as ``SHOW CREATE USER`` tells it, has this password, or the system's for none."""
    if not password:
        return bool(_SOCKET.search(account))
    match = _NATIVE.search(account)
    return bool(match) and match[1] == _hash(password)


def regranted(account: Account, now: Grants, then: Grants) -> Iterator[Change]:
    """What makes the privileges of an account those that it has then."""
    for place in sorted({*now, *then}):
        here, there = now.get(place, frozenset()), then.get(place, frozenset())
        taken, given = here - there, there - here
        if _ALL in there:
            taken &= _OPTION
        elif _ALL in here:
            # It means all but the right to pass them on.
            taken, given = {_ALL, *(taken & _OPTION)}, there - (here & _OPTION)
        for verb, way, names in (("REVOKE", "FROM", taken), ("GRANT", "TO", given)):
            for part in (names - _OPTION, names & _OPTION):
                if part:
                    statement = f"{verb} {', '.join(sorted(part))} ON {_quoted_place(place)} {way} {account}"
                    yield Change(statement, statement)


def _quoted_place(place: str) -> str:
    kind, space, names = place.rpartition(" ")
    return kind + space + ".".join(name if name == "*" else _identifier(name) for name in names.split(".", 1))


def _named(said: str) -> str:
    """``select (`b`, a)`` as ``SELECT(a,b)``."""
    name, _, columns = said.strip().partition("(")
    name = " ".join(name.upper().split())
    listed = sorted(column.strip(" `") for column in columns.rstrip(") ").split(",")) if columns else []
    return _ALIASES.get(name, name) + (f"({','.join(listed)})" if listed else "")


def _hash(password: str) -> str:
    """What mysql_native_password stores of a password: SHA-1 of its SHA-1."""
    once = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    return "*" + hashlib.sha1(once, usedforsecurity=False).hexdigest().upper()


def _identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class Server:
    """The server on this machine, asked as its root."""

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module

    def lines(self, statement: str) -> list[str]:
        """What it answers to statements, a line per row; one that it refuses ends the module."""
        return list(lines(self._module, statement))

    def accounts(self) -> frozenset[Account]:
        """All that there are."""
        rows = self.lines("SELECT user, host FROM mysql.user WHERE is_role = 'N'")
        return frozenset(Account(*row.split("\t")) for row in rows)

    def changes(self, users: list[Mapping[str, Any]], databases: list[str]) -> Iterator[Change]:
        """What differs from what is declared."""
        present = set(self.lines("SHOW DATABASES"))
        if "test" in present and "test" not in databases:
            yield Change("DROP DATABASE test", "DROP DATABASE test")
        for name in dict.fromkeys(databases):
            if name not in present:
                statement = f"CREATE DATABASE {_identifier(name)}"
                yield Change(statement, statement)
        accounts = self.accounts()
        for account in sorted(accounts):
            if not account.name:
                yield Change(f"DROP USER {account}", f"DROP USER {account}")
        for user in users:
            yield from self._account_changes(user, accounts)

    def _account_changes(self, user: Mapping[str, Any], accounts: frozenset[Account]) -> Iterator[Change]:
        account = Account(user["name"], user["host"].lower())
        password = user["password"]
        way = f"IDENTIFIED BY {text(password)}" if password else "IDENTIFIED VIA unix_socket"
        shown = "IDENTIFIED BY its password" if password else way
        now: Grants = {}
        if account not in accounts:
            yield Change(f"CREATE USER {account} {way}", f"CREATE USER {account} {shown}")
        else:
            if not is_let_in_so(" ".join(self.lines(f"SHOW CREATE USER {account}")), password):
                yield Change(f"ALTER USER {account} {way}", f"ALTER USER {account} {shown}")
            now = granted(self.lines(f"SHOW GRANTS FOR {account}"))
        yield from regranted(account, now, declared(user["privileges"]))


def main() -> None:
    """Ask, compare, tell; what differs then still is an error."""
    user: dict[str, Any] = {
        "name": {"type": "str", "required": True},
        "host": {"type": "str", "default": "localhost"},
        "password": {"type": "str", "no_log": True},
        "privileges": {"type": "str", "required": True},
    }
    arguments: dict[str, Any] = {
        "databases": {"type": "list", "elements": "str", "default": []},
        "users": {"type": "list", "elements": "dict", "default": [], "options": user},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    server = Server(module)
    wanted = module.params["users"], module.params["databases"]
    try:
        changes = list(server.changes(*wanted))
        if changes and not module.check_mode:
            server.lines("; ".join(change.statement for change in changes))
            if left := list(server.changes(*wanted)):
                module.fail_json(
                    msg="MariaDB took everything, and this differs still: "
                    f"{'; '.join(change.shown for change in left)}. "
                    "Write the privileges in mariadb_users as SHOW GRANTS shows them."
                )
    except ValueError as error:
        module.fail_json(msg=f"mariadb_users: privileges {error}")
    shown = [change.shown for change in changes]
    diff = {"before": "", "after": "".join(f"{line}\n" for line in shown)}
    module.exit_json(changed=bool(changes), changes=shown, diff=diff)


if __name__ == "__main__":
    main()

"""From the role's variables to what is desired, with everything that cannot be right found at once."""

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurm_accounting_plan import NORMAL, ROOT, Desired, State, depths
from ansible.module_utils.slurm_accounting_projects import expanded, problems
from ansible.module_utils.slurm_accounting_values import ACCOUNT, ASSOCIATION, MANAGERS, QOS, USER, Field

Entry = Mapping[str, Any]
Values = dict[str, str]

_NAME = re.compile(r"^[a-z0-9_][a-z0-9_.@+-]*$")


class Refused(Exception):  # noqa: N818 - the program is right, its input is not
    """What is declared cannot be, with every reason."""

    def __init__(self, findings: Sequence[str]) -> None:
        """All of them, so that they can be fixed at once."""
        super().__init__("; ".join(findings))
        self.findings = findings


def desire(
    cluster: str, entries: Mapping[str, Sequence[Entry]], state: State, *, purge: bool = False
) -> Desired:
    """What the entries (of accounts, users and qos) declare; raises Refused with all that is wrong."""
    wrong = list(problems(entries))
    entries = expanded(entries)
    declaration = _Declaration(entries, state, purge=purge)
    for entry in entries["qos"]:
        declaration.add_qos(entry)
    for entry in entries["accounts"]:
        declaration.add_account(entry)
    for entry in entries["users"]:
        declaration.add_user(entry)
    desired = Desired(
        cluster.lower(),
        declaration.qos,
        declaration.accounts,
        declaration.users,
        declaration.associations,
    )
    findings = [*wrong, *declaration.findings, *_circles(desired), *_foreign_defaults(desired)]
    if not _NAME.match(desired.cluster):
        findings.append(f"cluster {cluster!r}: a name is made of letters, digits and _ . @ + -")
    if findings:
        raise Refused(findings)
    return desired


class _Declaration:
    """Collects what is desired, and what is wrong with it."""

    def __init__(self, entries: Mapping[str, Sequence[Entry]], state: State, *, purge: bool) -> None:
        """What is purged in the same run cannot be referred to."""
        self.findings: list[str] = []
        self.qos: dict[str, Values] = {}
        self.accounts: dict[str, Values] = {}
        self.users: dict[str, Values] = {}
        self.associations: dict[tuple[str, str], Values] = {}
        self._known_qos = {e["name"] for e in entries["qos"]} | ({NORMAL} if purge else set(state.qos))
        self._known_accounts = {e["name"] for e in entries["accounts"]} | (
            {ROOT} if purge else set(state.accounts)
        )

    def add_qos(self, entry: Entry) -> None:
        """One entry of slurm_accounts_qos."""
        subject = self._subject("qos", entry)
        if entry["name"] in self.qos:
            self.findings.append(f"{subject}: declared twice")
        values = self._values(subject, QOS, entry)
        self._refer_all(subject, "QOS", values.get("preempt", ""), self._known_qos)
        self.qos[entry["name"]] = values

    def add_account(self, entry: Entry) -> None:
        """One entry of slurm_accounts_accounts."""
        name, parent = entry["name"], entry.get("parent") or ROOT
        subject = self._subject("account", entry)
        if name in self.accounts:
            self.findings.append(f"{subject}: declared twice")
        self._refer_all(subject, "account", parent, self._known_accounts)
        self.accounts[name] = self._values(subject, [*ACCOUNT, MANAGERS], entry)
        self.associations[name, ""] = self._association(subject, entry)
        if name != ROOT:
            self.associations[name, ""]["parent"] = parent

    def add_user(self, entry: Entry) -> None:
        """One entry of slurm_accounts_users; a user may have several, for different accounts."""
        name = entry["name"]
        subject = self._subject("user", entry)
        if not entry["accounts"]:
            self.findings.append(f"{subject}: accounts is empty; a user needs at least one")
        values = self._association(subject, entry)
        for account in entry["accounts"]:
            self._refer_all(subject, "account", account, self._known_accounts)
            if (account, name) in self.associations:
                self.findings.append(f"{subject}: declared twice for the account {account}")
            self.associations[account, name] = values
        own = self.users.setdefault(name, {})
        for option, value in self._values(subject, USER, entry).items():
            if own.setdefault(option, value) != value:
                self.findings.append(f"{subject}: declared with two values of {option}")

    def _subject(self, entity: str, entry: Entry) -> str:
        name = entry["name"]
        subject = f"{entity} {name}"
        if not _NAME.match(name):
            hint = f"; write {name.lower()}" if _NAME.match(name.lower()) else ""
            self.findings.append(
                f"{subject}: Slurm keeps names in lower case, made of letters, digits and _ . @ + -{hint}"
            )
        return subject

    def _association(self, subject: str, entry: Entry) -> Values:
        values = self._values(subject, ASSOCIATION, entry)
        for option in ("qos", "default_qos"):
            self._refer_all(subject, "QOS", values.get(option, ""), self._known_qos)
        return values

    def _values(self, subject: str, fields: Sequence[Field], entry: Entry) -> Values:
        """The declared options of an entry in their one spelling."""
        found = {}
        for field in fields:
            value = entry.get(field.option)
            if value is None:
                continue
            if field.is_time and not isinstance(value, str):
                self.findings.append(
                    f"{subject}: {field.option} is the number {value} (YAML makes 86400 of 24:00:00); "
                    'put it in quotes, as in "1-00:00:00" or "60"'
                )
                continue
            try:
                found[field.option] = field.read(value)
            except ValueError as problem:
                self.findings.append(f"{subject}: {field.option}: {problem}")
        return found

    def _refer_all(self, subject: str, what: str, names: str, known: Collection[str]) -> None:
        """Names, separated by commas, that must be declared or there already."""
        for name in names.split(","):
            if name and name not in known:
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
                hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known))}"
                self.findings.append(f"{subject}: there is no {what} {name}; {hint}")


def _circles(desired: Desired) -> Iterator[str]:
    parents = {name: desired.associations[name, ""].get("parent", ROOT) for name in desired.accounts}
    for name in sorted(parents.keys() - depths(parents).keys()):
        yield f"account {name}: its parents lead in a circle"
    for name in sorted(desired.qos):
        if name in _preempted(desired, name):
            yield f"qos {name}: preempt leads back to it"


def _preempted(desired: Desired, name: str) -> set[str]:
    """What a QOS preempts, directly or by way of others."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for other in desired.qos.get(waiting.pop(), {}).get("preempt", "").split(","):
            if other and other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _foreign_defaults(desired: Desired) -> Iterator[str]:
    for name, values in desired.users.items():
        default = values.get("default_account")
        if default and (default, name) not in desired.associations:
            yield f"user {name}: default_account {default} is not among its accounts"

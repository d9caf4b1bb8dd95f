"""Accounts, users and QOS of Slurm, and the accounts of the hosts: what the roles would refuse, and more.

The roles' own code judges, so that nothing is refused here that they would take, and the other way round.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import ansible.module_utils

from deploy.content import roles
from deploy.errors import Finding, Severity
from deploy.site.inventory import Host, Site
from deploy.site.partitions import VARIABLE as PARTITIONS
from deploy.site.schema import options
from deploy.site.values import faults, opaque, suggestion

_KINDS: Mapping[str, str] = {
    "account": "slurm_accounts_accounts",
    "user": "slurm_accounts_users",
    "qos": "slurm_accounts_qos",
}
_PREFIX = "slurm_accounts_"
_BUILT_IN: Mapping[str, str] = {"account": "root", "qos": "normal"}
_TITLES: Mapping[str, str] = {"account": "account", "qos": "QOS"}
_REFERENCES: Mapping[str, Mapping[str, str]] = {
    PARTITIONS: {
        "qos": "qos",
        "allow_qos": "qos",
        "allow_accounts": "account",
        "deny_accounts": "account",
    },
    _KINDS["account"]: {"parent": "account", "qos": "qos", "default_qos": "qos"},
    _KINDS["user"]: {"accounts": "account", "qos": "qos", "default_qos": "qos"},
    _KINDS["qos"]: {"preempt": "qos"},
}
"""The keys that name an account or a QOS, by variable."""

Entry = Mapping[str, Any]


def check_accounting(site: Site) -> Iterator[Finding]:
    """Everything about slurm_accounts_* that can be known without the database."""
    for controller in site.controllers:
        master = _accounted(site, controller)
        entries = {variable: _entries(master, variable) for variable in _REFERENCES}
        yield from _refused(master, entries)
        yield from _undeclared(master, entries)
        yield from _foreign_defaults(master, entries)
        yield from _unheeded_budgets(master, entries)
        yield from _purged_groups(master)


def _accounted(site: Site, controller: Host) -> Host:
    """A controller as if it had the accounts of the host that makes them."""
    makes = site.accounting_lead[0]

    def joined(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Mapping[str, Any]:
        beside = {name: value for name, value in ours.items() if not name.startswith(_PREFIX)}
        return beside | {name: value for name, value in theirs.items() if name.startswith(_PREFIX)}

    return replace(
        controller,
        variables=joined(controller.variables, makes.variables),
        origins=joined(controller.origins, makes.origins),
    )


def has_budgets(host: Host) -> bool:
    """Whether a controller's accounts have budgets."""
    return any(entry.get("budget") for entry in _entries(host, _KINDS["account"]))


def declared_members(host: Host) -> Mapping[str, list[str]]:
    """Who is declared to charge accounts, by account: as users, members or managers."""
    found: dict[str, set[str]] = {}
    for user in _entries(host, _KINDS["user"]):
        for account in user["accounts"]:
            found.setdefault(account, set()).add(user["name"])
    for account in _entries(host, _KINDS["account"]):
        named = {*(account.get("members") or ()), *(account.get("managers") or ())}
        found.setdefault(account["name"], set()).update(named)
    return {account: sorted(names) for account, names in found.items()}


def accounts_of_groups(host: Host) -> list[Entry]:
    """The accounts that groups charge: name, groups, and the members that are declared besides."""
    members = declared_members(host)
    return [
        {"name": account["name"], "groups": account["groups"], "members": members[account["name"]]}
        for account in _entries(host, _KINDS["account"])
        if account.get("groups")
    ]


def _purged_groups(master: Host) -> Iterator[Finding]:
    """Purging takes away all that is not declared, and so whoever came by a group."""
    found = accounts_of_groups(master)
    if found and master.variables.get("slurm_accounts_purge") is True:
        yield Finding(
            master.where("slurm_accounts_purge"),
            "invalid-accounting",
            f"account {found[0]['name']}: each run would take out whoever came by its groups, because "
            "slurm_accounts_purge is true",
            "leave slurm_accounts_purge out",
        )


def _budgets(entries: Mapping[str, list[Entry]]) -> Mapping[str, Entry]:
    return {entry["name"]: entry["budget"] for entry in entries[_KINDS["account"]] if entry.get("budget")}


def _unheeded_budgets(master: Host, entries: Mapping[str, list[Entry]]) -> Iterator[Finding]:
    """Budgets that Slurm would keep without heeding them."""
    budgets = _budgets(entries)
    where = master.where(_KINDS["account"])
    enforced = {str(word).lower() for word in master.value("slurmctld_accounting_enforce")}
    missing = {"limits", "qos"} - enforced
    if budgets and missing and "all" not in enforced:
        yield Finding(
            where,
            "budget-without-effect",
            f"{_named(budgets)} a budget, and slurmctld_accounting_enforce lacks "
            f"{', '.join(sorted(missing))}",
            "add it: slurmctld_accounting_enforce: [associations, limits, qos, safe]",
        )
    lowered = [name for name, budget in budgets.items() if budget.get("at_end") == "lower"]
    weights = master.value("slurmctld_priority_weights")
    if lowered and weights and not weights.get("qos"):
        yield Finding(
            where,
            "budget-without-effect",
            f"{_named(lowered)} a budget with at_end: lower, and priorities of QOS weigh nothing",
            "set slurmctld_priority_weights with qos above 0",
        )


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    return f"account {listed[0]} has" if len(listed) == 1 else f"accounts {', '.join(listed)} have"


def _entries(host: Host, variable: str) -> list[Entry]:
    """What a host's variable declares; nothing where that has faults of its own or is not known yet."""
    value = host.variables.get(variable)
    if not isinstance(value, list) or opaque(value) or faults(variable, value):
        return []
    return value


def load_judges() -> None:
    """Imports what judges accounts and users: for whoever waits for something else meanwhile."""
    _accounting_judge()
    _users_judge()


def _refused(master: Host, entries: Mapping[str, list[Entry]]) -> Iterator[Finding]:
    judge = _accounting_judge()
    kinds = {kind: entries[variable] for kind, variable in _KINDS.items()}
    state = judge.State(
        clusters=frozenset(),
        qos=dict.fromkeys(_referred(entries, "qos")),
        accounts=dict.fromkeys(_referred(entries, "account")),
        users={},
        associations={},
    )
    by_plural = {"qos": kinds["qos"], "accounts": kinds["account"], "users": kinds["user"]}
    try:
        judge.desire("cluster", by_plural, state)
    except judge.Refused as refusal:
        for text in dict.fromkeys(refusal.findings):
            where = master.where(_KINDS[text.split(" ", 1)[0]])
            yield Finding(where, "invalid-accounting", text, "fix this entry: docs/variables.md has its keys")


@cache
def _accounting_judge() -> ModuleType:
    """The part of the role slurm_accounts that runs before anything is asked of the database."""
    _offer(roles() / "slurm_accounts" / "module_utils")
    return import_module("ansible.module_utils.slurm_accounting_declared")


def _offer(place: Path) -> None:
    """Lets modules find what they share, as in a run."""
    if str(place) not in ansible.module_utils.__path__:
        ansible.module_utils.__path__.append(str(place))


@dataclass(frozen=True)
class _Mention:
    """A place that names an account or a QOS."""

    variable: str
    subject: str
    key: str
    kind: str
    name: str


def _mentions(entries: Mapping[str, list[Entry]]) -> Iterator[_Mention]:
    for variable, keys in _REFERENCES.items():
        title = {PARTITIONS: "partition", **{v: _TITLES.get(k, k) for k, v in _KINDS.items()}}[variable]
        for entry in entries[variable]:
            for key, kind in keys.items():
                value = entry.get(key) or []
                for name in value if isinstance(value, list) else [value]:
                    yield _Mention(variable, f"{title} {entry['name']}", key, kind, str(name).lower())
    for account in entries[_KINDS["account"]]:
        if name := (account.get("budget") or {}).get("lower_qos"):
            yield _Mention(_KINDS["account"], f"account {account['name']}", "budget.lower_qos", "qos", name)


def _referred(entries: Mapping[str, list[Entry]], kind: str) -> Iterator[str]:
    yield _BUILT_IN[kind]
    yield from (mention.name for mention in _mentions(entries) if mention.kind == kind)


def _undeclared(master: Host, entries: Mapping[str, list[Entry]]) -> Iterator[Finding]:
    """Accounts and QOS that are named and nowhere declared.

    A site that declares none keeps them by hand, and the database may have what it names.
    """
    purges = master.variables.get("slurm_accounts_purge") is True
    for mention in _mentions(entries):
        variable = _KINDS[mention.kind]
        declared = {str(entry["name"]).lower(): None for entry in entries[variable]}
        if mention.kind == "qos":
            declared |= dict.fromkeys(_budgets(entries))
        if mention.name in declared or mention.name == _BUILT_IN[mention.kind]:
            continue
        if variable in master.variables and not entries[variable] and master.variables[variable]:
            continue  # What is declared is not known, or has faults that are told.
        certain = bool(declared) or purges
        doubt = "" if certain else "; it must be in the accounting database already"
        meant = suggestion(mention.name, declared)
        hint = meant if "did you mean" in meant else f"declare it: {variable}: [{{name: {mention.name}}}]"
        yield Finding(
            master.where(mention.variable),
            "undeclared-reference",
            f"{mention.subject}: {mention.key} names the {_TITLES[mention.kind]} {mention.name}, which "
            f"{variable} does not declare{doubt}",
            hint,
            Severity.ERROR if certain else Severity.WARNING,
        )


def _foreign_defaults(master: Host, entries: Mapping[str, list[Entry]]) -> Iterator[Finding]:
    for kind in ("account", "user"):
        for entry in entries[_KINDS[kind]]:
            allowed, default = entry.get("qos"), entry.get("default_qos")
            if allowed and default and default not in allowed:
                yield Finding(
                    master.where(_KINDS[kind]),
                    "invalid-accounting",
                    f"{kind} {entry['name']}: default_qos {default} is not among its qos",
                    f"add {default} to its qos, or choose another default_qos",
                )


def check_users(site: Site) -> Iterator[Finding]:
    """The hosts' own accounts and groups, each declaration once."""
    seen = set()
    for host in site.cluster:
        groups, accounts = (_completed(host, name) for name in ("users_groups", "users_accounts"))
        key = json.dumps([groups, accounts])
        if key in seen or not (groups or accounts):
            continue
        seen.add(key)
        where = host.where("users_accounts" if accounts else "users_groups")
        taken = _taken_by_slurm(host, accounts, groups)
        for text in dict.fromkeys([*_users_judge().problems(groups, accounts), *taken]):
            yield Finding(where, "invalid-users", text, "fix this entry: docs/variables.md has its keys")


def _completed(host: Host, variable: str) -> list[Entry]:
    """The entries of a host's variable with the defaults of their keys."""
    keys: Mapping[str, Mapping[str, Any]] = options()[variable].spec["options"]
    defaults = {key: spec.get("default") for key, spec in keys.items()}
    return [
        {**defaults, **entry, **{key: int(entry[key]) for key in ("uid", "gid") if key in entry}}
        for entry in _entries(host, variable)
    ]


def _taken_by_slurm(host: Host, accounts: Iterable[Entry], groups: Iterable[Entry]) -> Iterator[str]:
    for entries, identity in ((accounts, "uid"), (groups, "gid")):
        variable = f"users_slurm_{identity}"
        number = host.variables.get(variable, options()[variable].spec["default"])
        for entry in entries:
            if str(entry[identity]) == str(number):
                yield f"{entry['name']}: {identity} {number} is slurm's own ({variable})"


@cache
def _users_judge() -> ModuleType:
    """The part of the role users that needs no host."""
    _offer(roles() / "users" / "module_utils")
    return import_module("ansible.module_utils.account_declarations")

"""Accounts that are projects: from members, managers and budgets to users, coordinators and QOS of Slurm's.

A budget is a QOS of the account's name with the flag NoDecay, whose use of resources neither fair share's
decay nor its resets touch. All jobs of the account are in it, so that it counts them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.slurm_accounting_values import tres

Entry = Mapping[str, Any]
Entries = dict[str, list[Entry]]

NO_DECAY = "NoDecay"
STOP = "stop"
PERIODS: Mapping[str, str] = {"month": "a month", "quarter": "a quarter", "year": "a year", "once": "in all"}
_MINUTES = 60
_PRIORITY = 1
"""Of jobs that a budget pays for, where the QOS says nothing else; one that jobs are lowered to has less."""
_HAS_HOURS = re.compile(r"cpu|node|billing|(?:gres|license)/.+")
_ITS_OWN = ("grp_tres_mins", "description")


def budgets(accounts: Sequence[Entry]) -> dict[str, Entry]:
    """The budgets by account."""
    return {account["name"]: account["budget"] for account in accounts if account.get("budget")}


def expanded(entries: Mapping[str, Sequence[Entry]]) -> Entries:
    """The entries in Slurm's own words: with the users and QOS that members and budgets mean."""
    accounts = list(entries["accounts"])
    paid = budgets(accounts)
    own = {entry["name"] for entry in entries["qos"]}
    made: list[Entry] = [{"name": name} for name in paid if name not in own]
    return {
        "qos": [
            _paying(paid[entry["name"]], entry) if entry["name"] in paid else entry
            for entry in [*entries["qos"], *made]
        ],
        "accounts": [_plain(account) for account in accounts],
        "users": [*entries["users"], *_members(accounts, entries["users"])],
    }


def in_words(budget: Entry) -> str:
    """What the description of a budget's QOS says, for people and for show-budget; Slurm keeps lower case."""
    then = STOP if _at_end(budget) == STOP else f"go on in {budget.get('lower_qos')}"
    return f"budget: {_hours(budget)} hours {PERIODS[budget.get('period') or 'month']}, then {then}"


def _at_end(budget: Entry) -> str:
    return str(budget.get("at_end") or STOP)


def _hours(budget: Entry) -> str:
    """In the one spelling, or as it is where that is refused."""
    try:
        return tres(str(budget.get("hours")))
    except ValueError:
        return str(budget.get("hours"))


def _paying(budget: Entry, entry: Entry) -> Entry:
    minutes = ",".join(
        f"{name}={int(amount) * _MINUTES}" for name, amount in _amounts(_hours(budget)) if amount.isdigit()
    )
    return {
        "priority": _PRIORITY,
        **{key: value for key, value in entry.items() if value is not None},
        "flags": sorted({NO_DECAY, *(entry.get("flags") or ())}),
        "description": in_words(budget),
        # Where jobs go on, Slurm has no limit to stop them at; who lowers them compares.
        "grp_tres_mins": minutes if _at_end(budget) == STOP else "-1",
    }


def _amounts(text: str) -> Iterator[tuple[str, str]]:
    for pair in text.split(","):
        name, _, amount = pair.partition("=")
        yield name, amount


def _plain(account: Entry) -> Entry:
    budget = account.get("budget")
    rest = {key: value for key, value in account.items() if key not in {"members", "groups", "budget"}}
    if not budget:
        return rest
    lower = [budget["lower_qos"]] if _at_end(budget) != STOP and budget.get("lower_qos") else []
    return {**rest, "qos": [account["name"], *lower], "default_qos": account["name"]}


def _members(accounts: Sequence[Entry], users: Sequence[Entry]) -> Iterator[Entry]:
    """An entry for each user who is nothing but a member; managers are members."""
    charged: dict[str, list[str]] = {}
    own = {(account, user["name"]) for user in users for account in user["accounts"]}
    for account in accounts:
        for name in account.get("members") or ():
            charged.setdefault(name, []).append(account["name"])
        for name in account.get("managers") or ():
            if (account["name"], name) not in own and account["name"] not in charged.get(name, ()):
                charged.setdefault(name, []).append(account["name"])
    for name, names in charged.items():
        yield {"name": name, "accounts": names}


def problems(entries: Mapping[str, Sequence[Entry]]) -> Iterator[str]:
    """What is wrong with budgets, whatever the database holds."""
    paid = budgets(entries["accounts"])
    for account in entries["accounts"]:
        if account["name"] in paid:
            yield from _problems_of(account, paid[account["name"]])
    for entry in entries["qos"]:
        if entry["name"] in paid:
            for key in _ITS_OWN:
                if entry.get(key) is not None:
                    yield f"qos {entry['name']}: {key} is what the budget of the account says; leave it out"
    for user in entries["users"]:
        for account in user["accounts"]:
            if user.get("qos") and account in paid:
                yield f"user {user['name']}: qos would let jobs pass by the budget of {account}; leave it out"
    yield from _bypasses(entries["accounts"], paid)


def _problems_of(account: Entry, budget: Entry) -> Iterator[str]:
    subject = f"account {account['name']}"
    for key in ("qos", "default_qos"):
        if account.get(key):
            yield f"{subject}: {key} beside a budget, whose QOS all its jobs are in; leave it out"
    try:
        amounts = dict(_amounts(tres(str(budget.get("hours")))))
    except ValueError as problem:
        yield f"{subject}: budget: hours: {problem}"
    else:
        if any(not amount.isdigit() or not int(amount) for amount in amounts.values()) or not all(
            _HAS_HOURS.fullmatch(name) for name in amounts
        ):
            yield (
                f"{subject}: budget: hours are counted of cpu, node, billing, gres and license, "
                "as in gres/gpu=5000"
            )
    lowers = _at_end(budget) != STOP
    if lowers and not budget.get("lower_qos"):
        yield f"{subject}: budget: at_end is lower, and lower_qos does not say in which QOS its jobs go on"
    if not lowers and budget.get("lower_qos"):
        yield f"{subject}: budget: lower_qos is for at_end: lower; at_end is {STOP}"
    if budget.get("lower_qos") == account["name"]:
        yield f"{subject}: budget: lower_qos is the QOS that the budget is counted in"


def _bypasses(accounts: Sequence[Entry], paid: Mapping[str, Entry]) -> Iterator[str]:
    """Accounts below one with a budget that let jobs into another QOS."""
    parents = {account["name"]: account.get("parent") for account in accounts}
    for account in accounts:
        above, seen = parents.get(account["name"]), set()
        while above and above not in seen and above not in paid:
            seen.add(above)
            above = parents.get(above)
        if above in paid and account.get("qos") and account["name"] not in paid:
            yield (
                f"account {account['name']}: qos would let jobs pass by the budget of {above}; leave it out, "
                "or give the account a budget of its own"
            )

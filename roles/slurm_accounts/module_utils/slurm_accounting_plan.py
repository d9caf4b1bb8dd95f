"""From what the database holds and what is declared to the fewest sacctmgr commands, in a sound order."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ansible.module_utils.slurm_accounting_values import (
    ACCOUNT,
    ADMIN_LEVEL,
    ASSOCIATION,
    DEFAULT_ACCOUNT,
    MANAGERS,
    QOS,
    Field,
)

Values = Mapping[str, str]
"""Options in their one spelling, by name."""

ROOT = "root"
"""Slurm's own account and user, never removed."""

NORMAL = "normal"
"""Slurm's own QOS, never removed."""

_NAMES_PER_COMMAND = 100
_PARENT = Field("parent", "Parent", str)


class State(NamedTuple):
    """What the database holds for one cluster.

    Associations are keyed by (account, user); the account's own has the user "".
    """

    clusters: frozenset[str]
    qos: Mapping[str, Values]
    accounts: Mapping[str, Values]
    users: Mapping[str, Values]
    associations: Mapping[tuple[str, str], Values]
    elsewhere: frozenset[tuple[str, str]] = frozenset()
    """Accounts and users that other clusters use, as ("account", name) and ("user", name)."""


EMPTY = State(
    clusters=frozenset(),
    qos={NORMAL: {}},
    accounts={ROOT: {}},
    users={ROOT: {"admin_level": "administrator", "default_account": ROOT}},
    associations={(ROOT, ""): {}, (ROOT, ROOT): {}},
)
"""A database that nobody has used."""


class Desired(NamedTuple):
    """What is declared. Options that are not declared are absent, and left as they are."""

    cluster: str
    qos: Mapping[str, Values]
    accounts: Mapping[str, Values]
    users: Mapping[str, Values]
    associations: Mapping[tuple[str, str], Values]
    """Accounts' own (with their parent) and users', in the order of declaration."""


class Change(NamedTuple):
    """One line of what becomes different; option is empty when the subject itself appears or goes."""

    subject: str
    option: str
    before: str
    after: str

    def __str__(self) -> str:
        """In one line."""
        if not self.option:
            return f"{self.subject}: {'remove' if self.before else 'add'}"
        return f"{self.subject}: {self.option} {self.before or 'unset'} -> {self.after or 'unset'}"


class Step(NamedTuple):
    """One sacctmgr command, and what it changes."""

    verb: str
    entity: str
    names: tuple[str, ...]
    where: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()

    @property
    def command(self) -> list[str]:
        """The arguments of sacctmgr."""
        name = "name=" + ",".join(self.names)
        if self.verb == "add":
            return ["-i", "add", self.entity, name, *self.where, *self.settings]
        arguments = ["-i", self.verb, self.entity, "where", name, *self.where]
        return [*arguments, "set", *self.settings] if self.verb == "modify" else arguments


def plan(desired: Desired, state: State, *, purge: bool = False) -> list[Step]:
    """The commands that bring the database to what is declared."""
    phases = [
        _add_cluster(desired, state),
        _add_qos(desired, state),
        _modify_qos(desired, state),
        *_accounts(desired, state),
        *_users(desired, state, purge=purge),
        *_managers(desired, state),
        *(_purge(desired, state) if purge else ()),
    ]
    return [step for phase in phases for step in _merge(phase)]


def _merge(steps: Iterable[Step]) -> Iterator[Step]:
    """Steps that differ in nothing but their names become one.

    Not deletions: one that is refused, because of a running job, would keep the others from being done.
    """
    alike: dict[tuple[object, ...], list[Step]] = {}
    for step in steps:
        alone = step.names if step.verb == "delete" else ()
        alike.setdefault((step.verb, step.entity, step.where, step.settings, alone), []).append(step)
    for group in alike.values():
        for start in range(0, len(group), _NAMES_PER_COMMAND):
            part = group[start : start + _NAMES_PER_COMMAND]
            yield part[0]._replace(
                names=tuple(name for step in part for name in step.names),
                changes=tuple(change for step in part for change in step.changes),
            )


def _differences(
    fields: Iterable[Field], wanted: Values, present: Values, subject: str
) -> tuple[tuple[str, ...], tuple[Change, ...]]:
    """The words that set what differs, and the changes they are."""
    words, changes = [], []
    for field in fields:
        before = present.get(field.option, field.unset)
        after = wanted.get(field.option, before)
        if after != before:
            words.append(field.word(after, before))
            changes.append(Change(subject, field.option, before, after))
    return tuple(words), tuple(changes)


def _add(
    entity: str,
    name: str,
    where: tuple[str, ...],
    subject: str,
    made: tuple[tuple[str, ...], tuple[Change, ...]],
) -> Step:
    return Step("add", entity, (name,), where, made[0], (Change(subject, "", "", "present"), *made[1]))


def _modify(
    entity: str, name: str, where: tuple[str, ...], made: tuple[tuple[str, ...], tuple[Change, ...]]
) -> Iterator[Step]:
    if made[0]:
        yield Step("modify", entity, (name,), where, *made)


def _add_cluster(desired: Desired, state: State) -> Iterator[Step]:
    if desired.cluster not in state.clusters:
        yield _add("cluster", desired.cluster, (), f"cluster {desired.cluster}", ((), ()))


def _add_qos(desired: Desired, state: State) -> Iterator[Step]:
    """Without what they preempt, which may be a QOS that comes after."""
    fields = [field for field in QOS if field.option != "preempt"]
    for name, wanted in desired.qos.items():
        if name not in state.qos:
            subject = f"qos {name}"
            yield _add("qos", name, (), subject, _differences(fields, wanted, {}, subject))


def _modify_qos(desired: Desired, state: State) -> Iterator[Step]:
    for name, wanted in desired.qos.items():
        fields = QOS if name in state.qos else [field for field in QOS if field.option == "preempt"]
        made = _differences(fields, wanted, state.qos.get(name, {}), f"qos {name}")
        yield from _modify("qos", name, (), made)


def depths(parents: Mapping[str, str]) -> dict[str, int]:
    """How far each account lies below the root; an account in a circle has no depth."""
    found = {}
    for name in parents:
        path = [name]
        # The last of a path may be an account that is in the database already and not among these.
        while parents.get(path[-1], ROOT) != ROOT and len(path) <= len(parents) + 1:
            path.append(parents[path[-1]])
        if len(path) <= len(parents) + 1:
            found[name] = len(path)
    return found


def _accounts(desired: Desired, state: State) -> Iterator[list[Step]]:
    """Parents before children: first those that are missing, then moves, then options."""
    own = {account: wanted for (account, user), wanted in desired.associations.items() if not user}
    depth = depths({name: wanted.get("parent", ROOT) for name, wanted in own.items()})
    where = (f"cluster={desired.cluster}",)
    adds: dict[int, list[Step]] = {}
    moves: dict[int, list[Step]] = {}
    options: list[Step] = []
    texts: list[Step] = []
    for name in sorted(own, key=lambda account: depth[account]):
        subject = f"account {name}"
        present = state.associations.get((name, ""))
        wanted_text = desired.accounts.get(name, {})
        if present is None:
            new = name not in state.accounts
            text = _differences(ACCOUNT, wanted_text, {}, subject) if new else ((), ())
            fields = _differences([_PARENT, *ASSOCIATION], own[name], {"parent": ROOT}, subject)
            adds.setdefault(depth[name], []).append(
                _add("account", name, where, subject, (text[0] + fields[0], text[1] + fields[1]))
            )
        else:
            made = _differences([_PARENT], own[name], present, subject)
            moves.setdefault(depth[name], []).extend(_modify("account", name, where, made))
            made = _differences(ASSOCIATION, own[name], present, subject)
            options.extend(_modify("account", name, where, made))
        if name in state.accounts:
            made = _differences(ACCOUNT, wanted_text, state.accounts[name], subject)
            texts.extend(_modify("account", name, (), made))
    yield from adds.values()
    yield from moves.values()
    yield options
    yield texts


def _users(desired: Desired, state: State, *, purge: bool) -> Iterator[list[Step]]:
    """Memberships first, then the defaults that need them."""
    adds: list[Step] = []
    options: list[Step] = []
    own: list[Step] = []
    for name in desired.users:
        default = _default_account(desired, name, state.users.get(name, {}), purge=purge)
        adds.extend(_join(desired, state, name, default))
        options.extend(_modify_memberships(desired, state, name))
        if name in state.users:
            own.extend(_modify_user(desired, state.users[name], name, default))
    yield adds
    yield options
    yield own


def _managers(desired: Desired, state: State) -> Iterator[list[Step]]:
    """Coordinators that are missing, and those that are too many. They are users already."""
    adds, deletes = [], []
    for name, wanted in desired.accounts.items():
        if MANAGERS.option not in wanted:
            continue
        now, then = _managing(state, name), _people(wanted)
        made = Change(f"account {name}", MANAGERS.option, ",".join(sorted(now)), ",".join(sorted(then)))
        where = (f"account={name}",)
        if then - now:
            adds.append(Step("add", "coordinator", tuple(sorted(then - now)), where, (), (made,)))
        gone = sorted(now - then)
        deletes += [Step("delete", "coordinator", (person,), where, (), (made,)) for person in gone]
    yield adds
    yield deletes


def _managing(state: State, name: str) -> set[str]:
    """The coordinators of an account itself: Slurm lists those of the accounts above, too."""
    found = _people(state.accounts.get(name, {}))
    above, seen = state.associations.get((name, ""), {}).get("parent", ""), {name}
    while above and above not in seen:
        seen.add(above)
        found -= _people(state.accounts.get(above, {}))
        above = state.associations.get((above, ""), {}).get("parent", "")
    return found


def _people(values: Values) -> set[str]:
    return {*values.get(MANAGERS.option, "").split(",")} - {""}


def _memberships(desired: Desired, name: str) -> dict[str, Values]:
    """The declared options of a user, by account."""
    return {account: values for (account, user), values in desired.associations.items() if user == name}


def _join(desired: Desired, state: State, name: str, default: str) -> Iterator[Step]:
    """Adds a user to the accounts that miss it, those with the same options together."""
    groups: dict[frozenset[tuple[str, str]], list[str]] = {}
    for account, wanted in _memberships(desired, name).items():
        if (account, name) not in state.associations:
            groups.setdefault(frozenset(wanted.items()), []).append(account)
    homeless = not state.users.get(name, {}).get("default_account")
    # The group with the default account goes first: with it the user comes into being.
    ordered = sorted(groups.items(), key=lambda group: default not in group[1])
    for index, (wanted_items, accounts) in enumerate(ordered):
        wanted = dict(wanted_items)
        changes: list[Change] = []
        for account in accounts:
            place = f"user {name} in {account}"
            changes += [Change(place, "", "", "present"), *_differences(ASSOCIATION, wanted, {}, place)[1]]
        words = _differences(ASSOCIATION, wanted, {}, "")[0]
        if index == 0 and homeless and default in accounts:
            words = (f"DefaultAccount={default}", *words)
        if index == 0 and name not in state.users:
            level = _differences([ADMIN_LEVEL], desired.users[name], {}, f"user {name}")
            words, changes = (*level[0], *words), [*changes, *level[1]]
        where = (f"cluster={desired.cluster}", "account=" + ",".join(accounts))
        yield Step("add", "user", (name,), where, words, tuple(changes))


def _modify_memberships(desired: Desired, state: State, name: str) -> Iterator[Step]:
    for account, wanted in _memberships(desired, name).items():
        present = state.associations.get((account, name))
        if present is not None:
            made = _differences(ASSOCIATION, wanted, present, f"user {name} in {account}")
            where = (f"cluster={desired.cluster}", f"account={account}")
            yield from _modify("user", name, where, made)


def _modify_user(desired: Desired, present: Values, name: str, default: str) -> Iterator[Step]:
    subject = f"user {name}"
    made = _differences([ADMIN_LEVEL], desired.users[name], present, subject)
    yield from _modify("user", name, (), made)
    if present.get("default_account"):
        made = _differences([DEFAULT_ACCOUNT], {"default_account": default}, present, subject)
        yield from _modify("user", name, (f"cluster={desired.cluster}",), made)


def _default_account(desired: Desired, name: str, present: Values, *, purge: bool) -> str:
    """The declared one, else the present one unless it would be purged, else the first that is declared."""
    accounts = [account for account, user in desired.associations if user == name]
    declared = desired.users[name].get("default_account")
    if declared:
        return declared
    now = present.get("default_account", "")
    return now if now and (now in accounts or not purge) else accounts[0]


def _purge(desired: Desired, state: State) -> Iterator[list[Step]]:
    """What is not declared goes, leaves first; what other clusters use goes from this cluster only."""
    cluster = f"cluster={desired.cluster}"
    users = [name for name in state.users if name not in desired.users and name != ROOT]
    yield [
        Step(
            "delete",
            "user",
            (user,),
            (cluster, f"account={account}"),
            (),
            (_gone(f"user {user} in {account}"),),
        )
        for account, user in state.associations
        if user in desired.users and user != ROOT and (account, user) not in desired.associations
    ]
    here = {user for _, user in state.associations}
    yield [
        Step("delete", "user", (name,), where, (), (_gone(f"user {name}"),))
        for name in users
        if (where := _scope("user", name, cluster, state, here=here)) is not None
    ]
    parents = {
        account: held.get("parent", ROOT) for (account, user), held in state.associations.items() if not user
    }
    depth = depths(parents)
    accounts = [name for name in state.accounts if (name, "") not in desired.associations and name != ROOT]
    for level in sorted({depth.get(name, 0) for name in accounts}, reverse=True):
        yield [
            Step("delete", "account", (name,), where, (), (_gone(f"account {name}"),))
            for name in accounts
            if depth.get(name, 0) == level
            and (where := _scope("account", name, cluster, state, here=set(parents))) is not None
        ]
    if state.clusters <= {desired.cluster}:  # a QOS belongs to all clusters of a database
        yield [
            Step("delete", "qos", (name,), (), (), (_gone(f"qos {name}"),))
            for name in state.qos
            if name not in desired.qos and name != NORMAL
        ]


def _gone(subject: str) -> Change:
    return Change(subject, "", "present", "")


def _scope(entity: str, name: str, cluster: str, state: State, *, here: set[str]) -> tuple[str, ...] | None:
    """Where a deletion reaches: everywhere, in this cluster only, or (None) there is nothing to delete."""
    if (entity, name) not in state.elsewhere:
        return ()
    return (cluster,) if name in here else None

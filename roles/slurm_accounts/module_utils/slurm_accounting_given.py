"""What was declared before and is no more: options go back to Slurm's default, the rest is taken away."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ansible.module_utils.slurm_accounting_plan import (
    NORMAL,
    ROOT,
    Change,
    Desired,
    State,
    Step,
    depths,
)
from ansible.module_utils.slurm_accounting_values import (
    ADMIN_LEVEL,
    ASSOCIATION,
    DEFAULT_ACCOUNT,
    MANAGERS,
    QOS,
    Field,
)

_NOBODY = Desired("", {}, {}, {}, {})
_NO_MORE = "0"


def as_data(desired: Desired) -> dict[str, Any]:
    """What is declared, as it is remembered on the host."""
    associations = [[account, user, dict(values)] for (account, user), values in desired.associations.items()]
    return {**desired._asdict(), "associations": associations}


def from_data(data: Mapping[str, Any]) -> Desired:
    """What was remembered; nothing where nobody ever did."""
    if not data:
        return _NOBODY
    associations = {(account, user): values for account, user, values in data["associations"]}
    return Desired(**{**data, "associations": associations})


def together(before: Desired, now: Desired) -> Desired:
    """All that was declared and is: what may be in the database while a change is made."""
    parts = [{**old, **new} for old, new in zip(before[1:], now[1:], strict=True)]
    return Desired(now.cluster, *parts)


def with_resets(desired: Desired, before: Desired) -> Desired:
    """What is declared, and unset what was declared of the same things and is no more.

    The QOS normal is Slurm's own: it stays where it is declared no more, without what it was given.
    """
    own = {name: {} for name in (NORMAL,) if name in before.qos}
    return desired._replace(
        qos=_reset(QOS, {**own, **desired.qos}, before.qos),
        accounts=_reset([MANAGERS], desired.accounts, before.accounts),
        users=_reset([ADMIN_LEVEL], desired.users, before.users),
        associations=_reset(ASSOCIATION, desired.associations, before.associations),
    )


def handed_over(
    declared: Desired, before: Desired, state: State, belongs: Callable[[str, str], bool]
) -> Desired:
    """What is declared, and the memberships of those who were declared and are in a group of the account.

    They stay for the group, without the options that were declared and without the limit of ``closable``.
    """
    kept: dict[tuple[str, str], dict[str, str]] = {
        key: {}
        for key in before.associations
        if key[1] and key in state.associations and key not in declared.associations and belongs(*key)
    }
    return declared._replace(
        users={**{user: {} for _, user in kept}, **declared.users},
        associations={**declared.associations, **kept},
    )


def without_handed(before: Desired, declared: Desired, desired: Desired) -> Desired:
    """What was declared before, without what was handed over: sync-accounts has it now."""
    handed = desired.associations.keys() - declared.associations.keys()
    return before._replace(
        associations={key: values for key, values in before.associations.items() if key not in handed}
    )


def closable(remembered: Desired, desired: Desired) -> Desired:
    """What is remembered, with the limit that a membership gets which is to go and has jobs (``closing``)."""
    closed = {"max_submit_jobs": _NO_MORE}
    return remembered._replace(
        associations={
            (account, user): {
                **values,
                **(closed if user and (account, user) not in desired.associations else {}),
            }
            for (account, user), values in remembered.associations.items()
        }
    )


def closing(step: Step, cluster: str) -> Step:
    """What keeps a user that a step could not delete from submitting jobs that keep him for ever."""
    where = (f"cluster={cluster}", *(word for word in step.where if not word.startswith("cluster=")))
    return Step("modify", "user", step.names, where, (f"MaxSubmitJobs={_NO_MORE}",))


def _reset(fields: Iterable[Field], now: Mapping[Any, Any], before: Mapping[Any, Any]) -> dict[Any, Any]:
    listed = list(fields)
    return {
        key: {
            **{field.option: field.unset for field in listed if field.option in before.get(key, {})},
            **values,
        }
        for key, values in now.items()
    }


def revocations(desired: Desired, state: State, before: Desired) -> list[Step]:
    """The commands that take away what was declared and is no more, leaves first.

    What somebody else made stays, and so does an account that it needs.
    """
    lost = [
        key
        for key in before.associations
        if key[1] not in {"", ROOT} and key in state.associations and key not in desired.associations
    ]
    kept = [key for key in state.associations if key not in lost]
    return [
        *_users(desired, state, before, lost, kept),
        *_accounts(desired, state, before, kept),
        *_qos(desired, state, before),
    ]


def _users(
    desired: Desired,
    state: State,
    before: Desired,
    lost: list[tuple[str, str]],
    kept: list[tuple[str, str]],
) -> Iterator[Step]:
    cluster = f"cluster={desired.cluster}"
    for name in before.users:
        if name in desired.users or name not in state.users or name == ROOT:
            continue
        level = state.users[name].get("admin_level", "")
        if before.users[name].get("admin_level") and level != ADMIN_LEVEL.unset:
            change = Change(f"user {name}", "admin_level", level, ADMIN_LEVEL.unset)
            yield Step(
                "modify", "user", (name,), (), (ADMIN_LEVEL.word(ADMIN_LEVEL.unset, level),), (change,)
            )
    for account, name in lost:
        others = [other for other, user in kept if user == name]
        if not others:
            continue
        if state.users.get(name, {}).get("default_account") == account:
            change = Change(f"user {name}", "default_account", account, others[0])
            yield Step("modify", "user", (name,), (cluster,), (DEFAULT_ACCOUNT.word(others[0]),), (change,))
        yield _delete("user", name, (cluster, f"account={account}"), f"user {name} in {account}")
    staying = {user for _, user in kept}
    for name in dict.fromkeys(user for _, user in lost if user not in staying):
        where = (cluster,) if ("user", name) in state.elsewhere else ()
        yield _delete("user", name, where, f"user {name}")


def _accounts(desired: Desired, state: State, before: Desired, kept: list[tuple[str, str]]) -> Iterator[Step]:
    parents = {
        account: values.get("parent", ROOT)
        for (account, user), values in state.associations.items()
        if not user
    }
    depth = depths(parents)
    wanted = [name for name in before.accounts if name in parents and (name, "") not in desired.associations]
    needed = {ROOT, *(account for account, user in kept if user)}
    gone: set[str] = set()
    for name in sorted(wanted, key=lambda account: -depth.get(account, 0)):
        if name in needed or any(above == name and below not in gone for below, above in parents.items()):
            continue
        gone.add(name)
        where = (f"cluster={desired.cluster}",) if ("account", name) in state.elsewhere else ()
        yield _delete("account", name, where, f"account {name}")


def _qos(desired: Desired, state: State, before: Desired) -> Iterator[Step]:
    if state.clusters <= {desired.cluster}:  # a QOS belongs to all clusters of a database
        for name in before.qos:
            if name in state.qos and name not in desired.qos and name != NORMAL:
                yield _delete("qos", name, (), f"qos {name}")


def _delete(entity: str, name: str, where: tuple[str, ...], subject: str) -> Step:
    return Step("delete", entity, (name,), where, (), (Change(subject, "", "present", ""),))

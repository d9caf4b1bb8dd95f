#!/usr/bin/python
"""Ansible module: Slurm's accounting database as it is declared."""

import grp
import os
import pwd
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.slurm_accounting_declared import Refused, desire
from ansible.module_utils.slurm_accounting_given import (
    as_data,
    closable,
    closing,
    from_data,
    handed_over,
    revocations,
    together,
    with_resets,
    without_handed,
)
from ansible.module_utils.slurm_accounting_jobs import deleted_qos, in_use, sparing
from ansible.module_utils.slurm_accounting_memory import Memory
from ansible.module_utils.slurm_accounting_plan import EMPTY, Change, Desired, State, Step, plan
from ansible.module_utils.slurm_accounting_projects import budgets
from ansible.module_utils.slurm_accounting_values import ACCOUNT, ASSOCIATION, MANAGERS, QOS, USER, Field

DOCUMENTATION = r"""
module: slurm_accounts
short_description: Slurm's accounting database as it is declared
description:
  - Reads cluster, QOS, accounts, users and associations with sacctmgr, and runs the fewest sacctmgr commands
    that make them what is declared; then reads again, since sacctmgr may report success and change nothing.
  - Options that were never declared are left as they are. C(-1) resets one.
  - With C(revokes) the module remembers what was declared. What is declared no more is taken away, and
    options go back to Slurm's default. What cannot be taken away yet, because of a job, is told.
  - In check mode a database that does not answer counts as empty.
options:
  cluster:
    description: The cluster's name.
    type: str
    required: true
  accounts:
    description: The accounts; see the role's argument specification for their keys.
    type: list
    elements: dict
    default: []
  users:
    description: The users and their accounts; see the role's argument specification for their keys.
    type: list
    elements: dict
    default: []
  qos:
    description: The qualities of service; see the role's argument specification for their keys.
    type: list
    elements: dict
    default: []
  names_only:
    description:
      - Whether QOS, those of budgets included, are made without anything but their names, where they are
        missing, and nothing else.
    type: bool
    default: false
  purge:
    description: Whether what is not declared is removed. Slurm's own root and normal stay.
    type: bool
    default: false
  revokes:
    description: Whether what was declared before and is no more is taken away.
    type: bool
    default: false
  database_host:
    description: The host of slurmdbd.
    type: str
    default: localhost
  database_port:
    description: The port of slurmdbd.
    type: int
    default: 6819
  database_name:
    description:
      - The database of slurmdbd, which has what is remembered, where this host has it. By no name a file of
        this host has it.
    type: str
    default: ""
  conf_servers:
    description:
      - The controllers. slurmctld is asked there before a QOS is deleted, and one that jobs are in stays.
        Without any it is not asked.
    type: list
    elements: str
    default: []
  auth_type:
    description: AuthType, by which slurmdbd knows who asks.
    type: str
    default: auth/munge
author: [the maintainers of this project]
"""

RETURN = r"""
changes:
  description: What became different, or would in check mode, a line each.
  type: list
  returned: always
commands:
  description: The sacctmgr commands, as argument lists.
  type: list
  returned: always
deploy_pending:
  description: What could not be taken away yet, with the reason.
  type: list
  returned: always
"""

_ROUNDS = 5
_UNREACHABLE = (
    "PersistInit",
    "Munge encode failed",
    "any sack sockets",
    "Problem with query",
    "slurmdbd is not",
)
_ACTIVE = "Job(s) active"
_HINTS = (
    (
        "no TRES known by type",
        "slurmctld makes its AccountingStorageTRES known when it starts; run this again after that",
    ),
    (_ACTIVE, "wait for these jobs or cancel them, then run this again"),
    (
        "PersistInit",
        "on the host of slurmdbd see: systemctl status slurmdbd munge; tail /var/log/slurm/slurmdbd.log",
    ),
    ("Access/permission denied", "run it as root on a host whose munge key is the cluster's"),
)

Sacctmgr = Callable[..., str]
"""Runs sacctmgr with the given arguments and returns what it prints; raises Failed."""


class Failed(Exception):  # noqa: N818 - it is sacctmgr that failed
    """What sacctmgr said when it did not do what it was asked to."""


def said(out: str, err: str) -> str:
    """Sacctmgr's reason in one line."""
    lines = [line.strip().removeprefix("sacctmgr: ") for line in (err + "\n" + out).splitlines()]
    text = "; ".join(dict.fromkeys(line for line in lines if line not in {"", "error:"}))
    hints = [hint for sign, hint in _HINTS if sign in text]
    return "\n".join([text[-1500:], *hints])


def rows(text: str, columns: int) -> Iterator[list[str]]:
    """The lines of `sacctmgr -nP`; the last column may hold anything."""
    for line in text.splitlines():
        cells = line.split("|", columns - 1)
        if len(cells) != columns:
            reason = f"sacctmgr printed {line!r} where {columns} columns were expected"
            raise Failed(reason)
        yield cells


def table(
    sacctmgr: Sacctmgr, entity: str, keys: Sequence[str], fields: Iterable[Field], *words: str
) -> Iterator[tuple[list[str], dict[str, str]]]:
    """What `sacctmgr show` knows of an entity: its key columns, and its options in their one spelling."""
    fields = list(fields)
    columns = [*keys, *(field.keyword for field in fields)]
    text = sacctmgr("-nP", "show", entity, *words, "format=" + ",".join(columns))
    for cells in rows(text, len(columns)):
        values = zip(fields, cells[len(keys) :], strict=True)
        yield cells[: len(keys)], {field.option: field.heard(cell) for field, cell in values}


def read(sacctmgr: Sacctmgr, cluster: str, *, names_only: bool = False) -> State:
    """What the database holds for a cluster, by five questions; clusters and QOS alone by two."""
    clusters = frozenset(row[0] for row in rows(sacctmgr("-nP", "show", "cluster", "format=Cluster"), 1))
    qos = {keys[0]: values for keys, values in table(sacctmgr, "qos", ["Name"], QOS)}
    if names_only:
        return State(clusters, qos, {}, {}, {}, frozenset())
    described = table(sacctmgr, "account", ["Account"], [MANAGERS, *ACCOUNT], "withcoord")
    accounts = {keys[0]: values for keys, values in described}
    users = {keys[0]: values for keys, values in table(sacctmgr, "user", ["User"], USER)}
    associations = {}
    elsewhere = set()
    keys = ["Cluster", "Account", "User", "Partition", "ParentName"]
    # wopl: without the limits that come from the parents.
    for (where, account, user, partition, parent), values in table(
        sacctmgr, "assoc", keys, ASSOCIATION, "wopl"
    ):
        if where != cluster:
            elsewhere |= {("account", account), ("user", user)}
        elif not partition:
            associations[account, user] = {**values, **({} if user else {"parent": parent or "root"})}
    return State(clusters, qos, accounts, users, associations, frozenset(elsewhere))


def converge(
    sacctmgr: Sacctmgr,
    desired: Desired,
    state: State,
    *,
    purge: bool = False,
    names_only: bool = False,
    spared: Iterable[str] = (),
) -> None:
    """Runs what is planned and plans again, until nothing is left to do; QOS that are spared stay."""
    refused: list[str] = []
    previous: list[list[str]] = []
    for _ in range(_ROUNDS):
        steps = sparing(plan(desired, state, purge=purge), spared)
        commands = [step.command for step in steps]
        if not steps:
            return
        if commands == previous:
            break
        refused = list(_run(sacctmgr, commands))
        previous = commands
        state = read(sacctmgr, desired.cluster, names_only=names_only)
    left = [str(change) for step in steps for change in step.changes]
    reasons = refused or ["sacctmgr reported success without effect"]
    raise Failed("\n".join([*reasons, "not done:", *left]))


def revoke(sacctmgr: Sacctmgr, desired: Desired, before: Desired, spared: Iterable[str] = ()) -> list[str]:
    """Takes away what is declared no more; returns what could not be, and why.

    Who cannot be taken away, because of a job, submits no more.
    """
    steps = revocations(desired, read(sacctmgr, desired.cluster), before) if before != desired else []
    refused = []
    for step in sparing(steps, spared):
        for reason in _run(sacctmgr, [step.command]):
            closes = step.entity == "user" and _ACTIVE in reason
            refused.append(f"{reason}; until then no more jobs are taken from there" if closes else reason)
            if closes:
                refused += _run(sacctmgr, [closing(step, desired.cluster).command])
    return refused


def _run(sacctmgr: Sacctmgr, commands: Iterable[list[str]]) -> Iterator[str]:
    """The commands that were refused, and why. One may need another that comes later, so all are tried."""
    for command in commands:
        try:
            sacctmgr(*command)
        except Failed as problem:
            reason = str(problem)
            if any(sign in reason for sign in _UNREACHABLE):
                raise
            yield f"sacctmgr {' '.join(command[1:])}: {reason}"


def in_groups(accounts: Iterable[Mapping[str, Any]]) -> Callable[[str, str], bool]:
    """Says of an account and a user whether he is in one of its groups, as sync-accounts finds him."""
    groups = {account["name"]: account.get("groups") or () for account in accounts}

    def belongs(account: str, user: str) -> bool:
        for name in groups.get(account, ()):
            with suppress(KeyError):
                group, person = grp.getgrnam(name), pwd.getpwnam(user)
                if user in group.gr_mem or person.pw_gid == group.gr_gid:
                    return True
        return False

    return belongs


@contextmanager
def own_configuration(cluster: str, host: str, port: int, auth_type: str) -> Iterator[Mapping[str, str]]:
    """The environment of a sacctmgr that needs no slurm.conf: on a new cluster there is none yet."""
    text = (
        f"ClusterName={cluster}\nSlurmctldHost=localhost\nSlurmUser=slurm\nAuthType={auth_type}\n"
        "AccountingStorageType=accounting_storage/slurmdbd\n"
        f"AccountingStorageHost={host}\nAccountingStoragePort={port}\n"
    )
    with tempfile.TemporaryDirectory(prefix="slurm_accounts.") as directory:
        path = os.path.join(directory, "slurm.conf")  # noqa: PTH118 - a name, nothing more
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
        yield {"SLURM_CONF": path, "LC_ALL": "C.UTF-8"}


def difference(changes: Sequence[Change]) -> dict[str, str]:
    """What Ansible shows with --diff."""

    def side(values: Iterable[tuple[Change, str]]) -> str:
        lines = [
            ": ".join(part for part in (c.subject, c.option, value) if part) for c, value in values if value
        ]
        return "".join(f"{line}\n" for line in lines)

    return {
        "before": side((change, change.before) for change in changes),
        "after": side((change, change.after) for change in changes),
    }


def main() -> None:
    """Read, plan, run, and read again."""
    arguments: dict[str, Any] = {
        "cluster": {"type": "str", "required": True},
        **{
            name: {"type": "list", "elements": "dict", "default": []} for name in ("accounts", "users", "qos")
        },
        "names_only": {"type": "bool", "default": False},
        "purge": {"type": "bool", "default": False},
        "revokes": {"type": "bool", "default": False},
        "database_host": {"type": "str", "default": "localhost"},
        "database_port": {"type": "int", "default": 6819},
        "database_name": {"type": "str", "default": ""},
        "conf_servers": {"type": "list", "elements": "str", "default": []},
        "auth_type": {"type": "str", "default": "auth/munge"},
    }
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    given = module.params
    if given["names_only"]:
        names = [*(entry["name"] for entry in given["qos"]), *budgets(given["accounts"])]
        given["qos"] = [{"name": name} for name in dict.fromkeys(names)]
        given["accounts"] = []
    program = module.get_bin_path("sacctmgr", required=not module.check_mode)
    steps: list[Step] = []
    refused: list[str] = []
    place = (given["cluster"], given["database_host"], given["database_port"], given["auth_type"])
    with own_configuration(*place) as environment:

        def sacctmgr(*words: str) -> str:
            code, out, err = module.run_command([program, *words], environ_update=environment)
            if code != 0:
                raise Failed(said(out, err))
            return str(out)

        try:
            state = _state(module, sacctmgr) if program else EMPTY
            declared = desire(given["cluster"], given, state, purge=given["purge"])
            memory = Memory(module, given["database_name"]) if given["revokes"] else None
            before = from_data(memory.known) if memory else declared
            stays = handed_over(declared, before, state, in_groups(given["accounts"]))
            desired = with_resets(stays, before)
            steps = [*plan(desired, state, purge=given["purge"]), *revocations(stays, state, before)]
            spared = _spared(module, steps)
            steps = sparing(steps, spared)
            refused = [*spared.values()]
            if not module.check_mode:
                if memory:
                    memory.keep(as_data(closable(together(before, declared), declared)))
                how = {name: given[name] for name in ("purge", "names_only")}
                converge(sacctmgr, desired, state, **how, spared=spared)
                refused += revoke(sacctmgr, stays, before, spared)
                if memory:
                    left = together(without_handed(before, declared, stays), declared)
                    memory.keep(as_data(closable(left, declared) if refused else declared))
        except Refused as problem:
            module.fail_json(msg="slurm_accounts:\n" + "\n".join(problem.findings))
        except Failed as problem:
            module.fail_json(msg=str(problem), commands=[step.command for step in steps])
    changes = [change for step in steps for change in step.changes]
    module.exit_json(
        changed=bool(steps),
        changes=[str(change) for change in changes],
        commands=[step.command for step in steps],
        diff=difference(changes),
        deploy_pending=refused,
    )


def _spared(module: AnsibleModule, steps: Sequence[Step]) -> dict[str, str]:
    """The QOS that are not to be deleted now, and why."""
    servers = module.params["conf_servers"]
    names = deleted_qos(steps) if servers else []

    def squeue(*words: str) -> str:
        environment = {"SLURM_CONF_SERVER": ",".join(servers), "LC_ALL": "C.UTF-8"}
        code, out, err = module.run_command(
            ["squeue", *words], environ_update=environment, handle_exceptions=False
        )
        if code != 0:
            raise Failed(said(out, err))
        return str(out)

    return in_use(names, squeue, (Failed, OSError))


def _state(module: AnsibleModule, sacctmgr: Sacctmgr) -> State:
    try:
        return read(sacctmgr, module.params["cluster"].lower(), names_only=module.params["names_only"])
    except Failed as problem:
        if not module.check_mode:
            raise
        module.warn(f"slurmdbd does not answer yet, so everything counts as missing ({problem})")
        return EMPTY


if __name__ == "__main__":
    main()

"""Which member of the database begins, where none of them serves."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from deploy.errors import DeployError, ExitCode, error
from deploy.run.database_look import directory
from deploy.run.ssh import Unanswered
from deploy.site.inventory import VOTERS
from deploy.site.node_lists import fold

Look = Mapping[str, Any]
"""What ``run/database_look.py`` answers."""


def beginner(answers: Mapping[str, Any], database: str) -> str | None:
    """The host that begins, of those that have rows, in the inventory's order; None where one of them serves.

    ``database`` is the name of the accounting database.
    Raises DeployError ``database-lead-unknown`` where rows could be lost by any choice, and
    ``member-has-databases`` where one that is to be copied would lose what it has besides.
    """
    name = _beginner(answers, database)
    for other, look in answers.items():
        if other != name and not isinstance(look, Unanswered) and look["is_alone"] and look["others"]:
            raise _of_others(other, look["others"])
    return name


def _beginner(answers: Mapping[str, Any], database: str) -> str | None:
    said: dict[str, Look] = {n: a for n, a in answers.items() if not isinstance(a, Unanswered)}
    own = [name for name, look in said.items() if look["is_alone"] and look["has"]]
    unsure = [name for name, look in said.items() if look["is_in_doubt"] and look["has"]]
    others = [name for name, look in said.items() if name not in own and (look["cluster"] or name in unsure)]
    if own and len(own) + len(others) > 1:
        raise _own([*own, *others], database)
    serves = any(look["serves"] for look in said.values())
    # One that is being copied from another may have a position of before.
    kept = [look for look in said.values() if not (serves and look["is_in_doubt"])]
    clusters = {look["cluster"] for look in kept if look["cluster"]}
    if len(clusters) > 1:
        raise _unknown(
            said,
            f"{fold(said)} are of different databases: one would take the other's rows away",
            "on the one whose rows are not wanted: systemctl stop mariadb; "
            "rm /var/lib/mysql/grastate.dat; then the same again",
        )
    if serves:
        return None
    silent = [name for name in answers if name not in said]
    if silent:
        last = [name for name, look in said.items() if look["cluster"] and look["was_last"]]
        if last:
            return last[0]
        raise _unknown(
            silent,
            f"no member of the database serves, and {fold(silent)} does not answer: it may have rows that no "
            "other has",
            "bring it back, and the same again",
            ExitCode.UNREACHABLE,
        )
    unsure = [name for name in unsure if not said[name]["cluster"]]
    if unsure and len(others) > 1 and not any(look["was_last"] for look in said.values()):
        raise _unknown(
            unsure,
            f"how far the rows on {fold(unsure)} go is not known: a table was being altered when MariaDB "
            "ended, or it was being copied from the other one",
            f"systemctl restart --no-block mariadb on {fold(unsure)}, and the same again after half a "
            f"minute. Where that changes nothing, {_given_up(database)}",
        )
    if not clusters:
        return _first(said, database)
    return _furthest({name: look for name, look in said.items() if look["cluster"]})


def member_troubles(name: str, answers: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What keeps a member from taking over, or the others from it: reference, message, hint."""
    look = answers[name]
    if isinstance(look, Unanswered):
        return
    if not (look["serves"] and look["is_synced"]):
        why = "is not yet what the others have" if look["serves"] else "has no majority, or does not run"
        yield "member-not-synced", f"its database {why}", f"journalctl -u mariadb -n 50   (on {name})"
    elif look["votes"] < VOTERS:
        message = f"{look['votes']} of {VOTERS} have a vote on its database"
        yield (
            "members-missing",
            message,
            "start the one that is missing; on the arbitrator: systemctl start garb",
        )
    elif look["votes"] > VOTERS:
        yield (
            "members-surplus",
            f"{look['votes']} have a vote on its database, and {VOTERS} should",
            "systemctl disable --now garb   (on the host that was its arbitrator before)",
        )


def members_in_words(answers: Mapping[str, Any]) -> str:
    """How the database's hosts stand."""
    return ", ".join(f"{name} {_stands(look)}" for name, look in answers.items())


def members_as_data(answers: Mapping[str, Any]) -> dict[str, Any]:
    """The same for programs; None of one that is silent."""
    return {name: None if isinstance(look, Unanswered) else dict(look) for name, look in answers.items()}


def _stands(look: Any) -> str:  # noqa: ANN401 - what a host answers, or Unanswered
    if isinstance(look, Unanswered):
        return "silent"
    if not look["serves"]:
        return "does not serve"
    return f"synced ({look['votes']} of {VOTERS} votes)" if look["is_synced"] else "not synced"


def _first(said: Mapping[str, Look], database: str) -> str:
    """Of servers that were alone until now the one that has the database."""
    having = [name for name, look in said.items() if look["has"]]
    if len(having) > 1:
        raise _own(having, database)
    return having[0] if having else next(iter(said))


def _own(names: list[str], database: str) -> DeployError:
    return _unknown(
        names,
        f"{fold(names)} have the accounting database, each its own: one would take the other's rows away",
        _given_up(database),
    )


def _given_up(database: str) -> str:
    tables = shlex.quote(f"/var/lib/mysql/{directory(database)}")
    return (
        "on the one whose rows are not wanted, when it has been dumped: systemctl stop mariadb; rm -rf "
        f"/var/lib/mysql/grastate.dat {tables}; then the same again"
    )


def _of_others(name: str, databases: list[str]) -> DeployError:
    words = shlex.join(databases)
    drops = " ".join(f"DROP DATABASE `{each}`;" for each in databases)
    return error(
        "member-has-databases",
        f"its MariaDB has {', '.join(databases)}: as a member of the accounting database it would lose all "
        "that it has, with its accounts, to a copy of the other host's",
        where=name,
        hint="another host in [slurm-database]; or, there: "
        f"mariadb-dump --databases {words} > /root/kept.sql; "
        f"mariadb -e {shlex.quote(drops.rstrip(';'))}; then the same again",
        exit_code=ExitCode.FAILED,
    )


def _furthest(members: Mapping[str, Look]) -> str:
    last = next((name for name, look in members.items() if look["was_last"]), None)
    if last and members[last]["at"] is not None:
        ahead = [name for name, look in members.items() if (look["at"] or -1) > members[last]["at"]]
        if ahead:
            raise _unknown(
                [last, *ahead],
                f"{last} ended last by what it says, and yet the rows on {fold(ahead)} go further: that was "
                "another end, or each has rows that the other has not",
                f"where those of {fold(ahead)} are wanted, on {last}: sed -i "
                "'s/^safe_to_bootstrap:.*/safe_to_bootstrap: 0/' /var/lib/mysql/grastate.dat; where those of "
                f"{last} are, on {fold(ahead)}: rm /var/lib/mysql/grastate.dat; then the same again",
            )
        return last
    lost = [name for name, look in members.items() if look["at"] is None]
    if lost:
        raise _unknown(
            lost,
            f"how far the rows on {fold(lost)} go is not known: its MariaDB was not started since it served",
            f"systemctl restart --no-block mariadb on {fold(lost)}, and the same again after half a minute",
        )
    return max(members, key=lambda name: members[name]["at"])


def _unknown(
    names: Mapping[str, Look] | list[str], what: str, hint: str, code: ExitCode = ExitCode.FAILED
) -> DeployError:
    return error("database-lead-unknown", what, where=fold(names), hint=hint, exit_code=code)

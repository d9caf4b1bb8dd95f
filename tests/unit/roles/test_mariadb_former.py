"""Accounts of the database that were declared and are no more go; what others made, and all data, stay."""

import json
from collections.abc import Iterable

import pytest

from tests.unit.roles.loading import load_module

former = load_module("roles/mariadb/module_utils/mariadb_former.py")
Server, Known = former.Server, former.Known

SLURM, ANNA, ROOT = ["slurm", "localhost"], ["anna", "%"], ["root", "localhost"]
NOTHING = Known.from_data({})


def server(accounts: Iterable[list[str]] = (), databases: Iterable[str] = ()) -> object:
    return Server.of([ROOT, *accounts], ["mysql", *databases])


def declared(accounts: Iterable[list[str]] = (), databases: Iterable[str] = ()) -> object:
    return Server.of(accounts, databases)


def kept(known: object) -> object:
    """As it comes back from the host."""
    return Known.from_data(json.loads(json.dumps(known.as_data())))  # type: ignore[attr-defined]


def run(known: object, now: object, before: object, after: object) -> tuple[list[str], list[str], object]:
    """A run that finds the server as it was ``before``, and makes it what it is ``after``."""
    known = kept(former.noted(known, now, before))
    due = list(former.statements(known, now, after))
    pending = list(former.stays(known, now, after))
    return due, pending, kept(former.remaining(known, now, after))


def test_an_account_that_was_made_is_dropped_with_its_connections() -> None:
    both = server([SLURM, ANNA])
    due, pending, known = run(NOTHING, declared([SLURM, ANNA]), server(), both)
    assert (due, pending) == ([], [])
    due, pending, known = run(known, declared([SLURM]), both, both)
    assert (due, pending) == (["DROP USER 'anna'@'%'", "KILL USER 'anna'"], [])
    assert run(known, declared([SLURM]), server([SLURM]), server([SLURM]))[:2] == ([], [])


def test_an_account_that_was_there_before_loses_its_privileges_once_and_is_named_until_it_is_gone() -> None:
    there = server([ANNA])
    due, pending, known = run(NOTHING, declared([ANNA]), there, there)
    assert (due, pending) == ([], [])
    due, pending, known = run(known, declared(), there, there)
    assert due == ["REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'anna'@'%'"]
    assert [text.split(" is declared")[0] for text in pending] == ["the database account 'anna'@'%'"]
    due, again, known = run(known, declared(), there, there)
    assert (due, again) == ([], pending)
    assert run(known, declared(), server(), server())[:2] == ([], [])
    # Declared once more it is still none of ours.
    _, _, known = run(known, declared([ANNA]), there, there)
    assert run(known, declared(), there, there)[0] == ["REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'anna'@'%'"]


def test_what_was_never_declared_is_left_alone() -> None:
    everything = server([SLURM, ANNA], ["shop"])
    assert run(NOTHING, declared(), everything, everything)[:2] == ([], [])
    _, _, known = run(NOTHING, declared([SLURM]), server([ANNA]), server([SLURM, ANNA]))
    assert run(known, declared(), server([SLURM, ANNA]), server([SLURM, ANNA]))[0] == [
        "DROP USER 'slurm'@'localhost'",
        "KILL USER 'slurm'",
    ]


@pytest.mark.parametrize("before", [server(), Server.of([], [])])
def test_the_servers_own_accounts_keep_what_they_have(before: object) -> None:
    _, _, known = run(NOTHING, declared([ROOT]), before, server())
    assert run(known, declared(), server(), server())[:2] == ([], [])


def test_connections_of_an_account_of_the_same_name_go_on() -> None:
    elsewhere = ["slurm", "10.0.0.1"]
    both = server([SLURM, elsewhere])
    _, _, known = run(NOTHING, declared([SLURM]), server(), server([SLURM]))
    # The account moves to another host.
    assert run(known, declared([elsewhere]), server([SLURM]), both)[0] == ["DROP USER 'slurm'@'localhost'"]


def test_databases_stay_and_are_named_until_they_are_gone_or_declared_again() -> None:
    there = server(databases=["work", "shop"])
    _, _, known = run(NOTHING, declared(databases=["work", "shop"]), server(databases=["shop"]), there)
    for _ in range(2):
        due, pending, known = run(known, declared(), there, there)
        assert due == []
        assert [text.split(" and stays")[0] for text in pending] == ["the database work is declared no more"]
        assert "DROP DATABASE `work`" in pending[0]
    assert run(known, declared(databases=["work"]), there, there)[1] == []
    assert run(known, declared(), server(), server())[1] == []


def test_a_run_that_was_cut_off_knows_what_it_gave() -> None:
    known = kept(former.noted(NOTHING, declared([ANNA]), server()))
    known = kept(former.noted(known, declared(), server([ANNA])))
    assert list(former.statements(known, declared(), server([ANNA]))) == [
        "DROP USER 'anna'@'%'",
        "KILL USER 'anna'",
    ]


def test_names_are_strings_of_sql() -> None:
    odd = ["o'neil\\", "HOST"]
    _, _, known = run(NOTHING, declared([odd]), server(), server([odd]))
    assert run(known, declared(), server([odd]), server([odd]))[0][0] == r"DROP USER 'o''neil\\'@'host'"

"""Who begins where no member of the database serves, and what is refused because rows could be lost."""

from typing import Any

import pytest

from deploy.errors import DeployError
from deploy.judge.database_lead import beginner, member_troubles, members_as_data, members_in_words
from deploy.run.ssh import Unanswered

ONE, OTHER = "1a2b", "3c4d"


def look(**said: object) -> dict[str, Any]:
    """What a server answers that is of no cluster and has nothing."""
    alone = {"serves": False, "is_synced": False, "votes": 0, "has": False, "cluster": "", "at": None}
    return {**alone, "others": [], "is_in_doubt": False, "is_alone": True, "was_last": False, **said}


def member(at: int | None, **said: object) -> dict[str, Any]:
    return look(**{"has": True, "cluster": ONE, "at": at, "is_alone": False, **said})


def altered(at: int | None, cluster: str = ONE, **said: object) -> dict[str, Any]:
    """One that ended while a table was altered; what there is was found when it started."""
    return member(at, cluster=cluster, is_in_doubt=True, **said)


@pytest.mark.parametrize(
    ("db1", "db2", "begins"),
    [
        (look(), look(), "db1"),
        (look(has=True), look(), "db1"),
        (look(), look(has=True), "db2"),
        (member(None, serves=True), look(), None),
        (Unanswered("no route"), member(None, serves=True), None),
        (member(7), member(9), "db2"),
        (member(9), member(7), "db1"),
        (member(9), member(9), "db1"),
        (look(), member(3), "db2"),
        (member(7, was_last=True), member(None), "db1"),
        (member(7), member(9, was_last=True), "db2"),
        (member(9, was_last=True), member(9), "db1"),
        (Unanswered("no route"), member(7, was_last=True), "db2"),
        (look(), altered(None, ""), "db2"),
        (altered(None, "", serves=True), member(9), None),
        (member(None, serves=True), altered(7, OTHER), None),
        (member(7), member(None, cluster=""), "db1"),
        (altered(9), member(7), "db1"),
        (member(7), altered(9), "db2"),
        (member(9, was_last=True), altered(None, ""), "db1"),
    ],
    ids=[
        "new ones",
        "the first has rows",
        "the second has rows",
        "one serves",
        "the one that answers serves",
        "the second is further",
        "the first is further",
        "both as far",
        "the first is a new machine",
        "one ended last",
        "the second ended last",
        "one ended last with as much",
        "the one that answers ended last",
        "the first is a new machine, and the second altered a table",
        "the one that serves alters a table",
        "one of another cluster is being copied",
        "the second has what nobody wants",
        "the first altered a table, and is further",
        "the second altered a table, and is further",
        "one altered a table before the other ended last",
    ],
)
def test_the_one_begins_that_has_all_rows(db1: object, db2: object, begins: str | None) -> None:
    assert beginner({"db1": db1, "db2": db2}, "slurm_acct_db") == begins


@pytest.mark.parametrize(
    ("db1", "db2", "said"),
    [
        (Unanswered("no route"), member(7), "db1 does not answer: it may have rows that no other has"),
        (Unanswered("no route"), look(), "db1 does not answer"),
        (look(has=True), look(has=True), "db[1-2] have the accounting database, each its own"),
        (look(has=True), member(7), "db[1-2] have the accounting database, each its own"),
        (look(has=True), member(7, is_alone=True), "db[1-2] have the accounting database, each its own"),
        (member(7, serves=True), look(has=True), "db[1-2] have the accounting database, each its own"),
        (member(7), member(7, cluster=OTHER), "are of different databases"),
        (member(None, serves=True), member(7, cluster=OTHER), "are of different databases"),
        (member(7), member(None), "how far the rows on db2 go is not known"),
        (member(7, was_last=True), member(9), "db1 ended last by what it says, and yet the rows on db2 go"),
        (member(9), member(7, was_last=True), "db2 ended last by what it says, and yet the rows on db1 go"),
        (member(None, was_last=True), member(9), "how far the rows on db1 go is not known"),
        (altered(None, ""), member(9), "how far the rows on db1 go is not known: a table was being"),
        (member(9), altered(None, ""), "how far the rows on db2 go is not known: a table was being"),
        (altered(None, ""), altered(None, ""), "db[1-2] go is not known: a table was being"),
        (look(has=True), altered(None, ""), "db[1-2] have the accounting database, each its own"),
    ],
    ids=[
        *("silent", "silent beside a new one", "two of their own", "one of its own beside a former member"),
        *("beside one that left", "one of its own joins", "two clusters", "one of another that serves"),
        *("not looked for",),
        *("an end of before", "an end of before on the second", "an end of which nothing is known"),
        *("the first altered a table", "the second altered a table", "both altered a table"),
        *("one altered a table beside one of its own",),
    ],
)
def test_nobody_begins_where_rows_could_be_lost(db1: object, db2: object, said: str) -> None:
    with pytest.raises(DeployError) as refused:
        beginner({"db1": db1, "db2": db2}, "slurm_acct_db")
    (finding,) = refused.value.findings
    assert finding.reference == "database-lead-unknown"
    assert said in finding.message


@pytest.mark.parametrize("first", [look(has=True, others=["grafana"]), member(None, serves=True), look()])
def test_one_with_databases_of_others_is_not_made_a_copy(first: object) -> None:
    with pytest.raises(DeployError) as refused:
        beginner({"db1": first, "db2": look(others=["shop", "wiki"])}, "slurm_acct_db")
    (finding,) = refused.value.findings
    assert (finding.reference, finding.where) == ("member-has-databases", "db2")
    assert "has shop, wiki: as a member" in finding.message


def test_one_that_begins_keeps_all_that_it_has() -> None:
    assert beginner({"db1": look(has=True, others=["wiki"]), "db2": look()}, "slurm_acct_db") == "db1"
    assert beginner({"db1": member(None, serves=True), "db2": member(None, others=["wiki"])}, "x") is None


@pytest.mark.parametrize(("name", "word"), [("acct", "/acct"), ("our-acct", "/our@002dacct")])
@pytest.mark.parametrize("other", [look(has=True), member(7)])
def test_the_database_that_is_not_wanted_is_removed_by_its_own_name(
    other: object, name: str, word: str
) -> None:
    with pytest.raises(DeployError) as refused:
        beginner({"db1": look(has=True), "db2": other}, name)
    assert f"{word}; then the same again" in refused.value.findings[0].hint
    assert "slurm_acct_db" not in refused.value.findings[0].hint


def test_members_are_told_and_so_is_what_is_wrong_with_them() -> None:
    synced = member(None, serves=True, is_synced=True, votes=3)
    answers = {"db1": synced, "db2": member(7), "db3": Unanswered("no route"), "db4": {**synced, "votes": 2}}
    assert members_in_words(answers) == (
        "db1 synced (3 of 3 votes), db2 does not serve, db3 silent, db4 synced (2 of 3 votes)"
    )
    assert members_as_data(answers)["db3"] is None
    references = {name: [trouble[0] for trouble in member_troubles(name, answers)] for name in answers}
    (surplus,) = member_troubles("db1", {"db1": {**synced, "votes": 4}})
    assert surplus[:2] == ("members-surplus", "4 have a vote on its database, and 3 should")
    assert references == {"db1": [], "db2": ["member-not-synced"], "db3": [], "db4": ["members-missing"]}

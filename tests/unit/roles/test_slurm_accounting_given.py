"""What was declared in the accounting database and is no more is taken away; what others made stays."""

import json
from typing import Any

import pytest

from tests.unit.roles.slurm_accounting.modules import (
    RELEASES,
    Loaded,
    declared,
    entries,
    entry,
    given,
    module,
    plans,
    recorded,
    without,
)

Declaration = dict[str, Any]


@pytest.fixture(params=RELEASES)
def state(request: pytest.FixtureRequest) -> Loaded:
    return module.read(recorded(request.param), "lab")


def commands(state: Loaded, now: Declaration, before: Declaration | None = None) -> list[str]:
    """The commands of a run, of which ``before`` was the last (nothing where there was none)."""
    wanted = declared.desire("lab", now, state)
    was = given.from_data({})
    if before is not None:
        # As it comes back from the host.
        was = given.from_data(json.loads(json.dumps(given.as_data(declared.desire("lab", before, state)))))
    steps = [*plans.plan(given.with_resets(wanted, was), state), *given.revocations(wanted, state, was)]
    return [" ".join(step.command) for step in steps]


def test_nothing_is_taken_that_was_not_declared_before(state: Loaded) -> None:
    nothing: Declaration = {"qos": [], "accounts": [], "users": []}
    assert commands(state, nothing) == []
    assert commands(state, entries(), entries()) == []
    assert commands(state, nothing, nothing) == []


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (without("users", "bob"), ["-i delete user where name=bob"]),
        # The recordings' database has another cluster, and a QOS belongs to all.
        (without("qos", "high"), []),
        (
            entry("users", "alice", admin_level=None),
            ["-i modify user where name=alice set AdminLevel=none"],
        ),
        (
            entry("users", "alice", accounts=["laser"], default_account=None),
            [
                "-i modify user where name=alice cluster=lab set DefaultAccount=laser",
                "-i delete user where name=alice cluster=lab account=math",
            ],
        ),
        (
            entry("accounts", "physics", max_jobs=None),
            ["-i modify account where name=physics cluster=lab set MaxJobs=-1"],
        ),
    ],
)
def test_what_is_declared_no_more_is_taken_away(state: Loaded, now: Declaration, expected: list[str]) -> None:
    if now["qos"] != entries()["qos"]:
        now["accounts"][0].update(qos=["normal"], default_qos=None)
    found = [command for command in commands(state, now, entries()) if "name=laser" not in command]
    assert found == expected


def test_an_account_goes_after_those_below_it(state: Loaded) -> None:
    now = {"qos": entries()["qos"], "accounts": [], "users": []}
    found = commands(state, now, entries())
    accounts = [command for command in found if " delete account " in command]
    assert accounts[0] == "-i delete account where name=laser cluster=lab"
    assert "-i delete account where name=physics" in accounts
    assert found.index("-i delete user where name=bob") < found.index(accounts[0])


def test_a_qos_goes_where_no_other_cluster_has_it(state: Loaded) -> None:
    alone = state._replace(clusters=frozenset({"lab"}))
    now = {**entries(), "qos": [], "accounts": [], "users": []}
    assert "-i delete qos where name=high" in commands(alone, now, entries())


def test_normal_stays_without_what_it_was_given(state: Loaded) -> None:
    before = entries()
    before["qos"] = [*before["qos"], {"name": "normal", "max_jobs_pu": 3}]
    has = state._replace(qos={**state.qos, "normal": {**state.qos["normal"], "max_jobs_pu": "3"}})
    assert commands(has, entries(), before) == ["-i modify qos where name=normal set MaxJobsPU=-1"]
    assert commands(has, entries(), entries()) == []


def test_what_somebody_else_made_stays(state: Loaded) -> None:
    """Of bob only this is known: then his membership is nobody's to take, and his account is needed."""
    before = without("users", "bob")
    now: Declaration = {"qos": entries()["qos"], "accounts": [], "users": []}
    found = commands(state, now, before)
    assert not [command for command in found if "name=bob" in command]
    assert not [command for command in found if "account where name=laser" in command]
    assert not [command for command in found if "account where name=physics" in command]


def test_until_it_is_done_both_are_remembered(state: Loaded) -> None:
    before = declared.desire("lab", entries(), state)
    now = declared.desire("lab", without("users", "bob"), state)
    both = given.together(before, now)
    assert both == given.from_data(json.loads(json.dumps(given.as_data(both))))
    assert ("laser", "bob") in both.associations

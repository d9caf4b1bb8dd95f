"""Accounts that are projects: what their members, managers and budgets come to in Slurm's own words."""

import json
from typing import Any

import pytest

from tests.unit.roles.slurm_accounting.modules import (
    RELEASES,
    Loaded,
    declared,
    given,
    module,
    plans,
    projects,
    recorded,
)

Declaration = dict[str, Any]
_HOURS = "account ice: budget: hours are counted of cpu, node, billing, gres and license, as in gres/gpu=5000"


@pytest.fixture(params=RELEASES)
def state(request: pytest.FixtureRequest) -> Loaded:
    return module.read(recorded(request.param), "lab")


def project(**keys: object) -> Declaration:
    return {"qos": [], "users": [], "accounts": [{"name": "ice", **keys}]}


def commands(state: Loaded, now: Declaration, before: Declaration | None = None) -> list[str]:
    wanted = declared.desire("lab", now, state)
    was = given.from_data({})
    if before is not None:
        was = given.from_data(json.loads(json.dumps(given.as_data(declared.desire("lab", before, state)))))
    return [" ".join(step.command) for step in plans.plan(given.with_resets(wanted, was), state)]


def refusals(now: Declaration) -> list[str]:
    state = plans.EMPTY._replace(qos={"normal": {}, "nocont": {}}, accounts={"root": {}, "physics": {}})
    with pytest.raises(declared.Refused) as refused:
        declared.desire("lab", now, state)
    return list(refused.value.findings)


def test_members_charge_and_managers_are_members_who_coordinate(state: Loaded) -> None:
    assert commands(state, project(members=["alice"], managers=["carol"])) == [
        "-i add account name=ice cluster=lab",
        "-i add user name=alice cluster=lab account=ice",
        "-i add user name=carol cluster=lab account=ice DefaultAccount=ice",
        "-i add coordinator name=carol account=ice",
    ]


def test_a_manager_with_limits_of_his_own_is_no_member_twice(state: Loaded) -> None:
    now = project(managers=["carol"])
    now["users"] = [{"name": "carol", "accounts": ["ice"], "max_jobs": 3}]
    assert [line for line in commands(state, now) if "add user" in line] == [
        "-i add user name=carol cluster=lab account=ice DefaultAccount=ice MaxJobs=3"
    ]


def test_a_member_with_limits_of_his_own_is_declared_twice() -> None:
    now = project(members=["carol"])
    now["users"] = [{"name": "carol", "accounts": ["ice"], "max_jobs": 3}]
    assert refusals(now) == ["user carol: declared twice for the account ice"]


def test_a_manager_of_before_manages_no_more(state: Loaded) -> None:
    now = {"qos": [], "users": [], "accounts": [{"name": "laser", "parent": "physics", "managers": ["bob"]}]}
    described = {**state.accounts, "laser": {"managers": "alice,zoe"}, "physics": {"managers": "zoe"}}
    there = state._replace(accounts=described)
    # zoe manages the account above.
    assert commands(there, now) == [
        "-i add coordinator name=bob account=laser",
        "-i delete coordinator where name=alice account=laser",
    ]
    gone = {"qos": [], "users": [], "accounts": [{"name": "laser", "parent": "physics"}]}
    assert commands(there, gone) == []
    assert commands(there, gone, now) == ["-i delete coordinator where name=alice account=laser"]


def test_managers_that_are_right_get_no_command(state: Loaded) -> None:
    now = {
        "qos": [],
        "users": [],
        "accounts": [{"name": "laser", "parent": "physics", "managers": ["alice"]}],
    }
    there = state._replace(accounts={**state.accounts, "laser": {"managers": "alice"}})
    assert commands(there, now) == []


def test_a_budget_is_a_qos_whose_use_does_not_decay(state: Loaded) -> None:
    now = project(budget={"hours": "gres/gpu=50,cpu=1K", "period": "quarter"})
    assert commands(state, now)[:2] == [
        (
            "-i add qos name=ice Priority=1 Flags=nodecay GrpTRESMins=cpu=61440,gres/gpu=3000 "
            "Description=budget: cpu=1024,gres/gpu=50 hours a quarter, then stop"
        ),
        "-i add account name=ice cluster=lab QOS=ice DefaultQOS=ice",
    ]


def test_where_jobs_go_on_slurm_has_no_limit(state: Loaded) -> None:
    budget = {"hours": "billing=20", "at_end": "lower", "lower_qos": "nocont"}
    now = project(budget=budget) | {"qos": [{"name": "nocont"}, {"name": "ice", "max_wall": "60"}]}
    found = commands(state, now)
    assert (
        "-i add qos name=ice Priority=1 Flags=nodecay MaxWall=01:00:00 "
        "Description=budget: billing=20 hours a month, then go on in nocont"
    ) in found
    assert "-i add account name=ice cluster=lab QOS=ice,nocont DefaultQOS=ice" in found


def test_a_budget_that_stops_no_more_loses_its_limit(state: Loaded) -> None:
    stops = project(budget={"hours": "billing=20"})
    there = state._replace(qos={**state.qos, "ice": {"grp_tres_mins": "billing=1200", "flags": "nodecay"}})
    lowers = project(budget={"hours": "billing=20", "at_end": "lower", "lower_qos": "high"})
    assert "GrpTRESMins=billing=-1" in next(
        line for line in commands(there, lowers, stops) if "modify qos" in line and "ice" in line
    )


def test_an_account_that_loses_its_budget_may_use_every_qos_of_its_parent(state: Loaded) -> None:
    there = state._replace(
        accounts={**state.accounts, "ice": {}},
        associations={
            **state.associations,
            ("ice", ""): {"qos": "ice", "default_qos": "ice", "parent": "root"},
        },
    )
    before = project(budget={"hours": "billing=20"})
    assert "-i modify account where name=ice cluster=lab set QOS= DefaultQOS=-1" in commands(
        there, project(), before
    )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {"budget": {"hours": "8 GPUs"}},
            (
                "account ice: budget: hours: '8 GPUs' is not a resource: name=amount, as in cpu=4,mem=8G,"
                "gres/gpu=2"
            ),
        ),
        (
            {"budget": {"hours": "gres/gpu=0"}},
            _HOURS,
        ),
        (
            {"budget": {"hours": "mem=1T"}},
            _HOURS,
        ),
        (
            {"budget": {"hours": "cpu=1", "at_end": "lower"}},
            "account ice: budget: at_end is lower, and lower_qos does not say in which QOS its jobs go on",
        ),
        (
            {"budget": {"hours": "cpu=1", "lower_qos": "nocont"}},
            "account ice: budget: lower_qos is for at_end: lower; at_end is stop",
        ),
        (
            {"budget": {"hours": "cpu=1", "at_end": "lower", "lower_qos": "ice"}},
            "account ice: budget: lower_qos is the QOS that the budget is counted in",
        ),
        (
            {"budget": {"hours": "cpu=1"}, "qos": ["nocont"]},
            "account ice: qos beside a budget, whose QOS all its jobs are in; leave it out",
        ),
        (
            {"budget": {"hours": "cpu=1", "at_end": "lower", "lower_qos": "cont"}},
            "account ice: there is no QOS cont; did you mean nocont?",
        ),
    ],
)
def test_budgets_that_cannot_be(keys: Declaration, expected: str) -> None:
    assert expected in refusals(project(**keys))


def test_no_way_around_a_budget() -> None:
    now = project(budget={"hours": "cpu=1"})
    now["accounts"] += [
        {"name": "sub", "parent": "ice"},
        {"name": "subsub", "parent": "sub", "qos": ["nocont"]},
        {"name": "own", "parent": "ice", "budget": {"hours": "cpu=1"}},
    ]
    now["users"] = [{"name": "alice", "accounts": ["ice"], "qos": ["nocont"]}]
    now["qos"] = [{"name": "ice", "grp_tres_mins": "cpu=1"}]
    assert refusals(now) == [
        "qos ice: grp_tres_mins is what the budget of the account says; leave it out",
        "user alice: qos would let jobs pass by the budget of ice; leave it out",
        (
            "account subsub: qos would let jobs pass by the budget of ice; leave it out, or give the account "
            "a budget of its own"
        ),
    ]


def test_words_for_people() -> None:
    assert projects.in_words({"hours": "gres/gpu=5", "period": "once"}) == (
        "budget: gres/gpu=5 hours in all, then stop"
    )


@pytest.mark.parametrize("hours", ["energy=5", "cpu=5,pages=1", "fs/disk=5", "vmem=3", "gpu=3", "gres/gpu=0"])
def test_what_no_job_has_hours_of_is_no_budget(hours: str) -> None:
    budget = {"hours": hours, "at_end": "lower", "lower_qos": "nocont"}
    (said,) = refusals(project(budget=budget))
    assert said == _HOURS


@pytest.mark.parametrize("hours", ["cpu=1,node=2,billing=3", "gres/gpu:a100=4", "license/matlab=5"])
def test_what_has_hours_is_one(state: Loaded, hours: str) -> None:
    assert commands(state, project(budget={"hours": hours}))

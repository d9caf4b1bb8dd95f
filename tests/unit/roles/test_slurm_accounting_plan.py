from typing import Any

import pytest

from tests.unit.roles.slurm_accounting.modules import (
    RELEASES,
    Loaded,
    declared,
    entries,
    entry,
    module,
    plans,
    recorded,
    without,
)


@pytest.fixture(params=RELEASES)
def state(request: pytest.FixtureRequest) -> Loaded:
    """The database as each release of Slurm prints it."""
    return module.read(recorded(request.param), "lab")


def commands(state: Loaded, given: dict[str, Any], *, purge: bool = False) -> list[str]:
    desired = declared.desire("Lab", given, state, purge=purge)
    return [" ".join(step.command) for step in plans.plan(desired, state, purge=purge)]


def changes(state: Loaded, given: dict[str, Any]) -> list[str]:
    desired = declared.desire("lab", given, state)
    return [str(change) for step in plans.plan(desired, state) for change in step.changes]


def test_nothing_to_do(state: Loaded) -> None:
    assert commands(state, entries()) == []


def test_what_is_not_declared_is_left_alone(state: Loaded) -> None:
    assert commands(state, {"qos": [], "accounts": [], "users": []}) == []


def test_a_parent_may_be_in_the_database_alone(state: Loaded) -> None:
    laser = next(account for account in entries()["accounts"] if account["name"] == "laser")
    assert laser["parent"] == "physics"
    assert commands(state, {"qos": [], "accounts": [laser], "users": []}) == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (entry("qos", "high", priority=5), "-i modify qos where name=high set Priority=5"),
        (entry("qos", "high", max_wall="-1"), "-i modify qos where name=high set MaxWall=-1"),
        (
            entry("qos", "high", max_tres_pu="cpu=4"),
            "-i modify qos where name=high set MaxTRESPU=cpu=4,mem=-1",
        ),
        (entry("qos", "high", preempt=[]), "-i modify qos where name=high set Preempt="),
        (entry("qos", "high", flags=["NoDecay"]), "-i modify qos where name=high set Flags=nodecay"),
        (entry("qos", "normal", priority=1), "-i modify qos where name=normal set Priority=1"),
        (
            entry("accounts", "physics", grp_tres="cpu=128", max_jobs=-1),
            "-i modify account where name=physics cluster=lab set GrpTRES=cpu=128,mem=-1 MaxJobs=-1",
        ),
        (
            entry("accounts", "root", grp_jobs=7),
            "-i modify account where name=root cluster=lab set GrpJobs=7",
        ),
        (
            entry("accounts", "laser", parent="math"),
            "-i modify account where name=laser cluster=lab set Parent=math",
        ),
        (
            entry("accounts", "physics", description="New"),
            "-i modify account where name=physics set Description=new",
        ),
        (
            entry("users", "bob", default_qos="high", qos=["high"]),
            "-i modify user where name=bob cluster=lab account=laser set QOS=high DefaultQOS=high",
        ),
        (entry("users", "alice", admin_level="none"), "-i modify user where name=alice set AdminLevel=none"),
        (
            entry("users", "alice", default_account="laser"),
            "-i modify user where name=alice cluster=lab set DefaultAccount=laser",
        ),
        (
            entry("users", "bob", accounts=["laser", "math"], fairshare="2"),
            (
                "-i add user name=bob cluster=lab account=math Fairshare=2 ; "
                "-i modify user where name=bob cluster=lab account=laser set Fairshare=2"
            ),
        ),
    ],
)
def test_one_change_is_one_command(state: Loaded, given: dict[str, Any], expected: str) -> None:
    assert " ; ".join(commands(state, given)) == expected


def test_additions(state: Loaded) -> None:
    given = entries()
    given["qos"].append({"name": "urgent", "preempt": ["later"], "priority": 3})
    given["qos"].append({"name": "later"})
    given["accounts"].append({"name": "lenses", "parent": "optics", "max_jobs": 2})
    given["accounts"].append({"name": "optics", "parent": "laser", "description": "Light", "fairshare": 3})
    given["users"].append({"name": "dora", "accounts": ["lenses", "optics"], "default_account": "optics"})
    given["users"].append({"name": "emil", "accounts": ["math"], "admin_level": "administrator"})
    assert commands(state, given) == [
        "-i add qos name=urgent Priority=3",
        "-i add qos name=later",
        "-i modify qos where name=urgent set Preempt=later",
        "-i add account name=optics cluster=lab Description=light Parent=laser Fairshare=3",
        "-i add account name=lenses cluster=lab Parent=optics MaxJobs=2",
        "-i add user name=dora cluster=lab account=lenses,optics DefaultAccount=optics",
        "-i add user name=emil cluster=lab account=math AdminLevel=administrator DefaultAccount=math",
    ]


def test_users_alike_share_a_command(state: Loaded) -> None:
    given = entries()
    given["users"] += [{"name": f"u{number}", "accounts": ["math"], "max_jobs": 1} for number in range(250)]
    sizes = [command.split()[3].count(",") + 1 for command in commands(state, given)]
    assert sizes == [100, 100, 50]
    assert commands(state, given)[2].endswith("u249 cluster=lab account=math DefaultAccount=math MaxJobs=1")


def test_memberships_with_other_options_are_added_apart_the_default_first(state: Loaded) -> None:
    given = entries()
    given["users"] += [
        {"name": "dora", "accounts": ["math"], "max_jobs": 1},
        {"name": "dora", "accounts": ["laser"], "default_account": "laser"},
    ]
    assert commands(state, given) == [
        "-i add user name=dora cluster=lab account=laser DefaultAccount=laser",
        "-i add user name=dora cluster=lab account=math MaxJobs=1",
    ]


def test_accounts_that_change_places_are_moved_from_the_top(state: Loaded) -> None:
    given = entry("accounts", "physics", parent="laser")
    next(item for item in given["accounts"] if item["name"] == "laser")["parent"] = "root"
    assert commands(state, given) == [
        "-i modify account where name=laser cluster=lab set Parent=root",
        "-i modify account where name=physics cluster=lab set Parent=laser",
    ]


def test_an_empty_database() -> None:
    high = [
        *("Priority=100", "Flags=denyonlimit,nodecay", "GraceTime=60", "MaxWall=1-00:00:00"),
        *("MaxSubmitJobsPU=10", "MaxTRESPU=cpu=4,mem=1536M", "MaxTRESRunMinsPU=cpu=100"),
        *("PreemptExemptTime=01:30:00", "UsageFactor=2.000000", "Description=high prio"),
    ]
    physics = [
        *("Organization=uni, x", "Description=it`s physics", "GrpTRES=cpu=64,mem=1048576M"),
        *("GrpWall=30-00:00:00", "MaxJobs=20"),
    ]
    alice = "AdminLevel=operator DefaultAccount=math MaxJobs=3"
    assert commands(plans.EMPTY, entries()) == [
        "-i add cluster name=lab",
        f"-i add qos name=high {' '.join(high)}",
        "-i add qos name=scav GrpTRES=cpu=10,mem=1048576M PreemptMode=requeue",
        "-i modify qos where name=high set Preempt=normal,scav",
        f"-i add account name=physics cluster=lab {' '.join(physics)}",
        "-i add account name=math cluster=lab Fairshare=parent",
        "-i add account name=laser cluster=lab Parent=physics Fairshare=10 QOS=high,normal DefaultQOS=high",
        f"-i add user name=alice cluster=lab account=laser,math {alice}",
        "-i add user name=bob,carl cluster=lab account=laser DefaultAccount=laser",
        "-i add user name=carl cluster=lab account=math QOS=scav DefaultQOS=scav",
    ]


def test_an_account_that_only_another_cluster_uses_is_added_here(state: Loaded) -> None:
    given = entries()
    given["accounts"].append({"name": "guests", "description": "Visitors"})
    given["users"].append({"name": "eve", "accounts": ["guests"]})
    assert commands(state, given) == [
        "-i add account name=guests cluster=lab",
        "-i modify account where name=guests set Description=visitors",
        "-i add user name=eve cluster=lab account=guests DefaultAccount=guests",
    ]


def test_purge_leaves_root_normal_and_other_clusters_alone(state: Loaded) -> None:
    assert commands(state, entries(), purge=True) == []
    alone = state._replace(clusters=frozenset({"lab"}), elsewhere=frozenset())
    nothing: dict[str, Any] = {"qos": [], "accounts": [], "users": []}
    assert commands(alone, nothing, purge=True) == [
        "-i delete user where name=alice",
        "-i delete user where name=bob",
        "-i delete user where name=carl",
        "-i delete user where name=eve",
        "-i delete account where name=laser",
        "-i delete account where name=math",
        "-i delete account where name=physics",
        "-i delete account where name=guests",
        "-i delete qos where name=scav",
        "-i delete qos where name=high",
    ]
    assert commands(state, nothing, purge=True) == [
        "-i delete user where name=alice cluster=lab",
        "-i delete user where name=bob",
        "-i delete user where name=carl",
        "-i delete account where name=laser cluster=lab",
        "-i delete account where name=math",
        "-i delete account where name=physics",
    ]


def test_purge_takes_a_membership_and_gives_another_default(state: Loaded) -> None:
    given = entry("users", "alice", accounts=["laser"], default_account=None)
    assert commands(state, given, purge=True) == [
        "-i modify user where name=alice cluster=lab set DefaultAccount=laser",
        "-i delete user where name=alice cluster=lab account=math",
    ]
    assert commands(state, given) == []


def test_changes_are_said_in_words(state: Loaded) -> None:
    assert changes(state, entry("qos", "high", priority=5)) == ["qos high: priority 100 -> 5"]
    assert changes(state, entry("qos", "high", max_wall="-1")) == ["qos high: max_wall 1-00:00:00 -> unset"]
    assert changes(state, entry("users", "fred", accounts=["math"], admin_level="operator")) == [
        "user fred in math: add",
        "user fred: admin_level none -> operator",
    ]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            entry("accounts", "laser", parent="phsics"),
            "account laser: there is no account phsics; did you mean physics?",
        ),
        (entry("accounts", "laser", qos=["hihg"]), "account laser: there is no QOS hihg; did you mean high?"),
        (
            entry("users", "bob", default_qos="zzz"),
            "user bob: there is no QOS zzz; known: high, normal, scav",
        ),
        (entry("users", "bob", accounts=["laser", "nope"]), "user bob: there is no account nope"),
        (entry("users", "bob", accounts=[]), "user bob: accounts is empty"),
        (
            entry("users", "bob", accounts=["laser", "laser"]),
            "user bob: declared twice for the account laser",
        ),
        (entry("users", "bob", default_account="math"), "user bob: default_account math is not among its"),
        (entry("users", "Fred", accounts=["math"]), "user Fred: Slurm keeps names in lower case.*write fred"),
        (entry("users", "a,b", accounts=["math"]), "user a,b: Slurm keeps names"),
        (entry("accounts", "physics", parent="laser"), "account physics: its parents lead in a circle"),
        (entry("qos", "high", max_wall=86400), "qos high: max_wall is the number 86400 .*in quotes"),
        (entry("qos", "high", max_wall="1 day"), "qos high: max_wall: '1 day' is not a time"),
        (entry("qos", "high", max_tres_pu="4 cpus"), "qos high: max_tres_pu: '4 cpus' is not a resource"),
        ({**entries(), "qos": [*entries()["qos"], {"name": "high"}]}, "qos high: declared twice"),
        (
            {**entries(), "accounts": [*entries()["accounts"], {"name": "math"}]},
            "account math: declared twice",
        ),
        (
            {
                **entries(),
                "users": [*entries()["users"], *entry("users", "alice", admin_level="none")["users"]],
            },
            "user alice: declared with two values of admin_level",
        ),
    ],
)
def test_what_cannot_be_is_refused(state: Loaded, given: dict[str, Any], reason: str) -> None:
    with pytest.raises(declared.Refused, match=reason):
        declared.desire("lab", given, state)


def test_everything_wrong_is_said_at_once(state: Loaded) -> None:
    given = entry("qos", "high", max_wall="1 day")
    given["users"].append({"name": "Fred", "accounts": ["nope"]})
    with pytest.raises(declared.Refused) as refused:
        declared.desire("lab ", given, state)
    assert len(refused.value.findings) == 4


def test_what_is_purged_cannot_be_used(state: Loaded) -> None:
    with pytest.raises(declared.Refused, match="account laser: there is no account physics"):
        declared.desire("lab", without("accounts", "physics"), state, purge=True)
    assert declared.desire("lab", without("accounts", "physics"), state)

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.slurm_accounting.modules import (
    RELEASES,
    declared,
    entries,
    entry,
    given,
    jobs,
    module,
    plans,
    recorded,
    without,
)


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Database:
    """A sacctmgr whose commands have the scripted outcome."""

    def __init__(self, release: str, *outcomes: str) -> None:
        self.ask = recorded(release)
        self.outcomes = list(outcomes)
        self.commands: list[str] = []

    def __call__(self, *words: str) -> str:
        if words[0] == "-nP":
            return str(self.ask(*words))
        self.commands.append(" ".join(words))
        outcome = self.outcomes.pop(0) if self.outcomes else ""
        if outcome:
            raise module.Failed(outcome)
        return ""


def converge(database: Database, given: dict[str, Any]) -> None:
    state = module.read(database, "lab")
    module.converge(database, declared.desire("lab", given, state), state, purge=False)


def test_reading(release: str) -> None:
    state = module.read(recorded(release), "lab")
    assert state.clusters == {"lab", "other"}
    assert state.qos["high"]["max_tres_pu"] == "cpu=4,mem=1536M"
    physics = {"managers": "", "organization": "uni, x", "description": "it`s physics"}
    assert state.accounts["physics"] == physics
    assert state.users["alice"] == {"admin_level": "operator", "default_account": "math"}
    assert state.associations["laser", ""]["parent"] == "physics"
    assert state.associations["laser", "alice"]["max_jobs"] == "3"
    assert "parent" not in state.associations["laser", "alice"]
    assert ("guests", "") not in state.associations
    assert ("user", "eve") in state.elsewhere
    assert ("user", "bob") not in state.elsewhere


def test_for_names_alone_only_those_are_asked_for(release: str) -> None:
    asked, recorded_answer = [], recorded(release)

    def ask(*words: str) -> str:
        asked.append(words[2])
        return str(recorded_answer(*words))

    state = module.read(ask, "lab", names_only=True)
    assert asked == ["cluster", "qos"]
    assert state.qos == module.read(recorded(release), "lab").qos


def test_a_membership_of_a_partition_is_not_the_users_own(release: str) -> None:
    assert module.read(recorded(release), "lab").associations["laser", "bob"]["fairshare"] == "1"


def test_a_converged_database_gets_no_command(release: str) -> None:
    database = Database(release)
    converge(database, entries())
    assert database.commands == []


def test_success_without_effect_is_a_failure(release: str) -> None:
    database = Database(release)
    with pytest.raises(module.Failed, match="without effect\nnot done:\nqos high: priority 100"):
        converge(database, entry("qos", "high", priority=5))
    assert len(database.commands) == 1


def test_a_refusal_is_said_in_sacctmgrs_words(release: str) -> None:
    reason = module.said(
        " Unknown option: GrpTRES=gres/gpu=8\n", "sacctmgr: error: no TRES known by type gres/gpu\n"
    )
    with pytest.raises(module.Failed) as failed:
        converge(Database(release, reason), entry("accounts", "physics", grp_tres="gres/gpu=8"))
    message = str(failed.value)
    assert message.startswith("sacctmgr modify account where name=physics cluster=lab set GrpTRES=")
    assert "no TRES known by type gres/gpu; Unknown option: GrpTRES=gres/gpu=8" in message
    assert "AccountingStorageTRES" in message


def test_one_refusal_does_not_keep_the_others_from_being_tried(release: str) -> None:
    given = entry("qos", "high", priority=5)
    given["users"].append({"name": "fred", "accounts": ["math"]})
    database = Database(release, "refused")
    with pytest.raises(module.Failed, match=r"^sacctmgr modify qos .*=5: refused\nnot done:\n"):
        converge(database, given)
    assert [command.split()[1] for command in database.commands] == ["modify", "add"]


def test_nothing_is_tried_once_slurmdbd_is_gone(release: str) -> None:
    given = entry("qos", "high", priority=5)
    given["users"].append({"name": "fred", "accounts": ["math"]})
    database = Database(release, "error: Sending PersistInit msg: Connection refused")
    with pytest.raises(module.Failed, match="Connection refused"):
        converge(database, given)
    assert len(database.commands) == 1


ACTIVE = " Error with request: Job(s) active, cancel job(s) before remove"


@pytest.mark.parametrize(
    ("now", "command"),
    [
        (without("users", "bob"), "-i modify user where name=bob cluster=lab set MaxSubmitJobs=0"),
        (
            entry("users", "alice", accounts=["laser"], default_account=None),
            "-i modify user where name=alice cluster=lab account=math set MaxSubmitJobs=0",
        ),
    ],
)
def test_who_cannot_go_because_of_a_job_submits_no_more(
    release: str, now: dict[str, Any], command: str
) -> None:
    """One job that is held would keep the membership for ever, with all that it may do."""
    database = Database(release)
    state = module.read(database, "lab")
    before, wanted = declared.desire("lab", entries(), state), declared.desire("lab", now, state)
    refused = {" ".join(step.command): ACTIVE for step in given.revocations(wanted, state, before)}
    database.outcomes = [ACTIVE if "delete user" in line else "" for line in refused]
    (said,) = module.revoke(database, wanted, before)
    assert said.endswith("no more jobs are taken from there")
    assert database.commands[-1] == command
    # Who is declared again is open again.
    remembered = given.closable(given.together(before, wanted), wanted)
    [key] = [key for key in before.associations if key not in wanted.associations]
    closed = {**state.associations, key: {**state.associations[key], "max_submit_jobs": "0"}}
    (step,) = plans.plan(given.with_resets(before, remembered), state._replace(associations=closed))
    assert step.settings == ("MaxSubmitJobs=-1",)


def test_who_is_in_a_group_of_the_account_stays_when_he_is_declared_no_more(release: str) -> None:
    """Closed, he would be so for ever: for sync-accounts somebody has barred him by hand."""
    read = module.read(recorded(release), "lab")
    now = without("users", "bob")
    before = declared.desire("lab", entry("users", "bob", accounts=["laser"], max_jobs=3), read)
    wanted = declared.desire("lab", now, read)
    key = ("laser", "bob")
    # In an earlier run, when he was in no group yet, he was closed.
    before = given.closable(before, wanted)
    limits = {**read.associations[key], "max_jobs": "3", "max_submit_jobs": "0"}
    state = read._replace(associations={**read.associations, key: limits})
    assert given.revocations(wanted, state, before)
    stays = given.handed_over(wanted, before, state, lambda *each: each == key)
    assert given.revocations(stays, state, before) == []
    (step,) = plans.plan(given.with_resets(stays, before), state)
    assert step.command[:6] == ["-i", "modify", "user", "where", "name=bob", "cluster=lab"]
    assert set(step.settings) == {"MaxJobs=-1", "MaxSubmitJobs=-1"}
    # Then nothing of his is remembered, so that whom an admin bars later is not opened.
    left = given.without_handed(before, wanted, stays)
    assert before.associations.keys() - left.associations.keys() == {key}
    assert given.handed_over(wanted, left, state, lambda *_: True) == wanted
    # Nor is anybody kept who is in no group, or made who is there no more.
    assert given.handed_over(wanted, before, state, lambda *_: False) == wanted
    assert given.handed_over(wanted, before, plans.EMPTY, lambda *_: True) == wanted


class Ended(Exception):  # noqa: N818 - the module has done its work
    """What the module says at its end."""


class Run:
    """A run of the module, where the database has jobs of everybody and deletes no user."""

    check_mode = False

    def __init__(self, given: dict[str, Any]) -> None:
        defaults = {"cluster": "lab", "database_host": "x", "database_port": 1, "auth_type": "auth/munge"}
        self.params = {
            **defaults,
            "database_name": "",
            "conf_servers": [],
            "names_only": False,
            "purge": False,
            "revokes": True,
        }
        self.params |= given
        self.told: list[str] = []

    def get_bin_path(self, name: str, **_: object) -> str:
        return name

    def run_command(self, command: list[str], **_: object) -> tuple[int, str, str]:
        if command[1] == "-nP":
            return 0, recorded("24.11")(*command[1:]), ""
        self.told.append(" ".join(command[1:]))
        return (1, ACTIVE, "") if "delete user" in self.told[-1] else (0, "", "")

    def exit_json(self, **said: object) -> None:
        raise Ended(said)

    def fail_json(self, **said: object) -> None:
        raise AssertionError(said)


@pytest.mark.parametrize("members", [["bob"], ["alice"]])
def test_a_member_of_the_group_is_not_closed_for_a_job_of_his(
    monkeypatch: pytest.MonkeyPatch, members: list[str]
) -> None:
    remembered: list[dict[str, Any]] = [{}]

    def memory(_: object, __: str) -> SimpleNamespace:
        return SimpleNamespace(known=remembered[-1], keep=remembered.append)

    monkeypatch.setattr(module, "Memory", memory)
    group = SimpleNamespace(gr_mem=members, gr_gid=1)
    monkeypatch.setattr(module, "grp", SimpleNamespace(getgrnam=lambda _: group), raising=False)
    person = SimpleNamespace(pw_gid=100)
    monkeypatch.setattr(module, "pwd", SimpleNamespace(getpwnam=lambda _: person), raising=False)
    told = []
    for now in (entries(), without("users", "bob")):
        for account in now["accounts"]:
            account["groups"] = ["lasers"]
        run = Run(now)
        monkeypatch.setattr(module, "AnsibleModule", lambda run=run, **_: run)
        with pytest.raises(Ended):
            module.main()
        told.append(run.told)
    is_closed = members != ["bob"]
    assert told[0] == []
    assert ("-i modify user where name=bob cluster=lab set MaxSubmitJobs=0" in told[1]) == is_closed
    assert bool(told[1]) == is_closed
    assert ("bob" in [user for _, user, _ in remembered[-1]["associations"]]) == is_closed


def test_who_is_in_a_group_of_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = {"a": SimpleNamespace(gr_mem=["alice"], gr_gid=5000), "b": SimpleNamespace(gr_mem=[], gr_gid=1)}
    people = {"alice": SimpleNamespace(pw_gid=100), "bob": SimpleNamespace(pw_gid=5000)}
    monkeypatch.setattr(module.grp, "getgrnam", groups.__getitem__)
    monkeypatch.setattr(module.pwd, "getpwnam", people.__getitem__)
    belongs = module.in_groups([{"name": "sea", "groups": ["gone", "b", "a"]}, {"name": "ice"}])
    found = [(account, user) for account in ("sea", "ice", "x") for user in ("alice", "bob", "carol")]
    assert [key for key in found if belongs(*key)] == [("sea", "alice"), ("sea", "bob")]


def test_a_qos_with_jobs_stays() -> None:
    steps = [plans.Step("delete", "qos", (name,)) for name in ("busy", "idle", "unknown")] + [
        plans.Step("delete", "user", ("busy",))
    ]

    def squeue(*words: str) -> str:
        if words[-1] == "--qos=unknown":
            raise FileNotFoundError(words[-1])
        return "7\n7\n8\n" if words[-1] == "--qos=busy" else ""

    spared = jobs.in_use(jobs.deleted_qos(steps), squeue, (OSError,))
    assert spared["busy"].startswith("qos busy: not removed yet, because 2 jobs are in it")
    assert spared["unknown"].endswith("nobody says whether jobs are in it: --qos=unknown")
    assert [step.names[0] for step in jobs.sparing(steps, spared)] == ["idle", "busy"]


def test_a_qos_that_is_spared_is_not_purged(release: str) -> None:
    database = Database(release)
    state = module.read(database, "lab")._replace(clusters=frozenset({"lab"}))
    now = {**entries(), "qos": [], "accounts": [], "users": []}
    steps = plans.plan(declared.desire("lab", now, state, purge=True), state, purge=True)
    assert "high" in jobs.deleted_qos(steps)
    assert jobs.deleted_qos(jobs.sparing(steps, ["high"])) == [
        name for name in jobs.deleted_qos(steps) if name != "high"
    ]


def test_running_jobs_are_named() -> None:
    out = " Error with request: Job(s) active, cancel job(s) before remove\n  JobID = 7 C = lab A = math\n"
    assert module.said(out, "") == (
        "Error with request: Job(s) active, cancel job(s) before remove; JobID = 7 C = lab A = math\n"
        "wait for these jobs or cancel them, then run this again"
    )


def test_a_description_may_hold_the_separator() -> None:
    assert list(module.rows("math|x|a|b\n", 3)) == [["math", "x", "a|b"]]
    with pytest.raises(module.Failed, match="2 columns were expected"):
        list(module.rows("sacctmgr: something else", 2))


def test_difference() -> None:
    changes = [
        module.Change("account math", "", "", "present"),
        module.Change("qos high", "max_wall", "01:00:00", ""),
        module.Change("user bob", "", "present", ""),
    ]
    assert module.difference(changes) == {
        "before": "qos high: max_wall: 01:00:00\nuser bob: present\n",
        "after": "account math: present\n",
    }


def test_own_configuration_needs_no_slurm_conf() -> None:
    with module.own_configuration("lab", "db1", 7000, "auth/slurm") as environment:
        text = Path(environment["SLURM_CONF"]).read_text(encoding="utf-8")
    assert "AuthType=auth/slurm\n" in text
    assert "AccountingStorageHost=db1\nAccountingStoragePort=7000\n" in text

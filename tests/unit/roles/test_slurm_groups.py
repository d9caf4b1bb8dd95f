"""sync-accounts: who joins, who leaves, and when an answer of the directory is not believed."""

import importlib.machinery
import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.loading import ROOT

Module = Any
GROUPS: dict[str, list[str]] = {}
GIDS = {"firsts": 5000}
FIRST_GROUPS = {"local": 5000, "lena": 5000}
"""Accounts by their first groups, which do not name them. The directory lists nobody: lena is asked for."""


@pytest.fixture
def sync(monkeypatch: pytest.MonkeyPatch) -> Module:
    path = str(ROOT / "roles/slurm_groups/files/sync-accounts")
    loader = importlib.machinery.SourceFileLoader("sync_accounts", path)
    spec = importlib.util.spec_from_loader("sync_accounts", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    monkeypatch.setattr(module.grp, "getgrnam", group_of)
    monkeypatch.setattr(module.pwd, "getpwnam", known)
    monkeypatch.setattr(module.pwd, "getpwall", lambda: [known("local")])
    return module


def group_of(name: str) -> SimpleNamespace:
    return SimpleNamespace(gr_mem=GROUPS[name], gr_gid=GIDS.get(name, 4000))


def known(name: str) -> SimpleNamespace:
    if name == "nobody-knows":
        raise KeyError(name)
    return SimpleNamespace(pw_name=name, pw_gid=FIRST_GROUPS.get(name, 100))


@pytest.fixture(autouse=True)
def _groups() -> None:
    GROUPS.clear()


def settings(*accounts: dict[str, Any], leaving: str = "finish") -> dict[str, Any]:
    return {"cluster": "lab", "accounts": [*accounts], "leaving": leaving, "most_percent": 20}


def account(name: str, *groups: str, members: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"name": name, "groups": [*groups], "members": [*members]}


def made(*names: str, closed: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"open": [*names], "closed": [*closed], "held": {}}


def present(*names: str) -> dict[tuple[str, str], str]:
    return {("ice", name): "" for name in names}


def test_who_is_in_one_of_the_groups_joins(sync: Module) -> None:
    GROUPS.update(a=["alice", "nobody-knows", "Big"], b=["bob", "dora"])
    plan = sync.planned(settings(account("ice", "a", "b", members=("dora",))), {}, present("carol"))
    assert [*plan.lines()] == ["ice: alice joins", "ice: bob joins"]


def test_who_has_the_group_as_his_first_is_in_it(sync: Module) -> None:
    """Accounts of the host; of a directory's people those who are in the account already."""
    GROUPS.update(firsts=["bob"])
    plan = sync.planned(settings(account("ice", "firsts")), {"ice": made("lena")}, present("lena"))
    assert [*plan.lines()] == ["ice: bob joins", "ice: local joins"]
    GROUPS.update(firsts=[])
    plan = sync.planned(settings(account("ice", "firsts")), {}, present())
    assert [*plan.lines()] == ["ice: local joins"]


def test_a_plan_says_which_groups_bring_nobody(
    sync: Module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sync, "ask", Database(sync.UnansweredError).ask)
    GROUPS.update(a=[])
    given = settings(account("sky", "a", "b"))
    sync.synced(given, {}, SimpleNamespace(plan=True, agree=False))
    assert "sky: the group a is empty\nsky: nobody knows the group b\n" in capsys.readouterr().out
    sync.synced(given, {}, SimpleNamespace(plan=False, agree=False))
    assert capsys.readouterr().out == ""


def test_who_left_leaves_unless_he_is_declared_or_was_there_before(sync: Module) -> None:
    GROUPS.update(a=["bob"])
    state = {"ice": made("alice", "bob", "dora")}
    plan = sync.planned(
        settings(account("ice", "a", members=("dora",))), state, present("alice", "bob", "carol", "dora")
    )
    assert [*plan.lines()] == ["ice: alice leaves"]


def test_who_is_back_or_declared_since_is_opened(sync: Module) -> None:
    GROUPS.update(a=["alice"])
    state = {"ice": made(closed=("alice", "bob", "carol"))}
    plan = sync.planned(
        settings(account("ice", "a", members=("bob",))), state, present("alice", "bob", "carol")
    )
    assert [*plan.lines()] == ["ice: alice is back", "ice: bob is back"]


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ({"a": ["bob"]}, "nobody knows the group b"),
        ({"a": ["bob"], "b": []}, "the group b is empty"),
        ({"a": ["bob"], "b": ["nobody-knows"]}, "the group b is empty"),
    ],
)
def test_a_doubtful_answer_takes_nobody_out(sync: Module, groups: dict[str, list[str]], why: str) -> None:
    GROUPS.update(groups)
    plan = sync.planned(settings(account("ice", "a", "b")), {"ice": made("alice")}, present("alice"))
    assert [*plan.lines()] == ["ice: bob joins"]
    assert plan.doubts == [f"ice: nobody is taken out, because {why}"]


def test_what_was_noted_may_be_lost(sync: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is in the group is noted again; whom somebody barred by hand stays so."""
    database = Database(sync.UnansweredError)
    monkeypatch.setattr(sync, "ask", database.ask)
    GROUPS.update(a=["alice", "bob"])
    there = {("ice", "alice"): "", ("ice", "bob"): "0"}
    plan = sync.planned(settings(account("ice", "a")), {}, there)
    assert ([*plan.lines()], plan.keep) == ([], [("ice", "alice")])
    state: dict[str, Any] = {}
    sync.Work(settings(), state).do(plan)
    assert (state, database.told) == ({"ice": made("alice")}, [])


def test_an_account_that_has_no_groups_any_more_keeps_its_members(sync: Module) -> None:
    GROUPS.update(a=["bob"])
    state = {"ice": made("alice", closed=("carol",)), "sea": made("bob")}
    there = present("alice", "carol") | {("sea", "bob"): ""}
    for accounts in ((), (account("sea", "a"),)):
        plan = sync.planned(settings(*accounts), state, there)
        assert ([*plan.lines()], plan.doubts, plan.keep) == ([], [], [])


def test_members_of_accounts_without_groups_make_no_more_leave_at_once(sync: Module) -> None:
    GROUPS.update(a=["new"])
    names = [f"u{number}" for number in range(4)]
    state = {"ice": made(*names), "sea": made(*(f"s{number}" for number in range(50)))}
    given = settings(account("ice", "a"))
    assert sync.is_too_much(sync.planned(given, state, present(*names)), given, state)


@pytest.mark.parametrize(("there", "leaving", "refused"), [(3, 3, False), (19, 4, True), (20, 4, False)])
def test_many_do_not_leave_at_once(sync: Module, there: int, leaving: int, refused: bool) -> None:  # noqa: FBT001
    names = [f"u{number}" for number in range(there)]
    GROUPS.update(a=[*names[leaving:], "new"])
    state = {"ice": made(*names)}
    given = settings(account("ice", "a"))
    plan = sync.planned(given, state, present(*names))
    assert len(plan.close) == leaving
    assert sync.is_too_much(plan, given, state) == refused


class Database:
    """Slurm, as far as it is asked and told."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error
        self.told: list[str] = []
        self.default = "ice"
        self.priorities = {"7": 4, "8": 5, "9": 6, "10": 0}
        self.fails: set[str] = set()

    def ask(self, *command: str) -> str:
        line = " ".join(command)
        if "show associations" in line and "user=alice" in line:
            return "11\n13\n"
        if "show associations" in line:
            return "ice|alice||\nsea|alice||\nice|||\n"
        if "show user" in line:
            return f"alice|{self.default}\n"
        if line.startswith("squeue"):
            # As where the directory has deleted her: of a name that no host knows squeue lists nothing.
            of = {"7": 11, "8": 13, "9": 12, "10": 11}
            rows = (f"{job}  {of[job]}  {priority}\n" for job, priority in self.priorities.items())
            return "" if "--user" in line else "".join(rows)
        self.told.append(line)
        if line.startswith("scontrol hold"):
            self.priorities[command[-1]] = 0
        if line.startswith("scontrol") and command[-1] in self.fails:
            raise self.error(line)
        if line.startswith("scontrol release"):
            self.priorities[command[-1]] = 9
        return ""


def left(sync: Module, monkeypatch: pytest.MonkeyPatch, leaving: str) -> tuple[list[str], dict[str, Any]]:
    database = Database(sync.UnansweredError)
    monkeypatch.setattr(sync, "ask", database.ask)
    GROUPS.update(a=["bob"])
    state = {"ice": made("alice", "bob")}
    given = settings(account("ice", "a"), leaving=leaving)
    arguments = SimpleNamespace(plan=False, agree=False)
    assert sync.synced(given, state, arguments) == 0
    return database.told, state


def test_nothing_is_deleted_and_the_default_moves(sync: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    told, state = left(sync, monkeypatch, "finish")
    assert told == [
        "sacctmgr -i add user name=bob cluster=lab account=ice",
        "sacctmgr -i modify user where name=alice cluster=lab account=ice set MaxSubmitJobs=0",
        "sacctmgr -i modify user where name=alice cluster=lab set DefaultAccount=sea",
    ]
    assert state["ice"]["closed"] == ["alice"]


def test_jobs_are_held_or_ended(sync: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hers, by what Slurm's database calls her membership."""
    told, state = left(sync, monkeypatch, "hold")
    assert told[-2:] == ["scontrol hold 7", "scontrol hold 8"]
    assert state["ice"]["held"] == {"alice": ["7", "8"]}
    told, _ = left(sync, monkeypatch, "cancel")
    assert told[-3:] == ["scancel 7", "scancel 8", "scancel 10"]


def test_an_array_is_released_again_of_which_a_task_had_just_ended(
    sync: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then scontrol fails, although it has held all the others; what its owner held is his."""
    database = Database(sync.UnansweredError)
    database.fails = {"7"}
    monkeypatch.setattr(sync, "ask", database.ask)
    state = {"ice": made("alice")}
    plan = sync.Plan()
    plan.close = [("ice", "alice")]
    sync.Work(settings(leaving="hold"), state).do(plan)
    assert state["ice"]["held"] == {"alice": ["7", "8"]}
    # What could not be released is tried again.
    plan.close, plan.open = [], [("ice", "alice")]
    sync.Work(settings(), state).do(plan)
    assert state["ice"] == {"open": [], "closed": ["alice"], "held": {"alice": ["7"]}}
    database.fails = set()
    sync.Work(settings(), state).do(plan)
    assert (state["ice"], database.priorities["10"]) == (made("alice"), 0)


def test_a_preview_changes_nothing(
    sync: Module, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    database = Database(sync.UnansweredError)
    monkeypatch.setattr(sync, "ask", database.ask)
    GROUPS.update(a=["bob", "alice"])
    state: dict[str, Any] = {}
    sync.synced(settings(account("ice", "a")), state, SimpleNamespace(plan=True, agree=False))
    assert capsys.readouterr().out == "ice: bob joins\n1 changes; jobs of those who leave: finish\n"
    assert (state, database.told) == ({}, [])

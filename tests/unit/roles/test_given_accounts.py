"""What accounts were given is taken away when they are declared without it."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/users/module_utils/given_accounts.py")
given = load_module("playbooks/module_utils/given.py")

Entry = dict[str, Any]
_MEMBERS = {"sudo": ["alice", "bob"], "physics": ["alice"], "docker": ["alice"]}


def account(name: str, *groups: str, state: str = "present") -> Entry:
    return {"name": name, "groups": list(groups), "home": None, "state": state}


def host(own: str = "") -> Any:  # noqa: ANN401
    return module.Host(_MEMBERS, frozenset({"alice", "bob"}), own)


def known(*accounts: Entry, closed: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"accounts": module.giving(accounts), "closed": list(closed)}


ALICE = account("alice", "sudo", "physics")


@pytest.mark.parametrize(
    ("now", "before", "commands"),
    [
        ([ALICE], {}, []),
        ([ALICE], known(ALICE), []),
        ([account("alice", "physics")], known(ALICE), [["gpasswd", "--delete", "alice", "sudo"]]),
        ([account("alice")], {}, []),
        (
            [account("alice", state="absent")],
            known(ALICE),
            [["gpasswd", "--delete", "alice", "sudo"], ["gpasswd", "--delete", "alice", "physics"]],
        ),
        ([], known(account("carol", "sudo")), []),
        ([], known(account("alice")), [["usermod", "--expiredate", "1", "alice"]]),
        ([], known(account("alice"), closed=("alice",)), []),
        ([account("alice")], known(closed=("alice",)), [["usermod", "--expiredate", "", "alice"]]),
    ],
)
def test_only_what_was_given_is_taken_away(
    now: list[Entry], before: Entry, commands: list[list[str]]
) -> None:
    assert list(module.revocations(now, before, host())) == commands


def test_who_is_declared_no_more_loses_all_that_was_given() -> None:
    assert list(module.revocations([], known(ALICE), host())) == [
        ["gpasswd", "--delete", "alice", "sudo"],
        ["gpasswd", "--delete", "alice", "physics"],
        ["usermod", "--expiredate", "1", "alice"],
    ]
    after = module.remembered([], known(ALICE), host())
    assert after == {"accounts": {"alice": {"groups": [], "home": "/home/alice"}}, "closed": ["alice"]}
    assert list(module.revocations([], after, host())) == []
    assert module.former([], after, host()) == ["alice"]


def test_the_account_that_deploy_comes_in_as_is_left_as_it_is() -> None:
    before = known(ALICE)
    assert list(module.revocations([], before, host("alice"))) == []
    assert module.former([], before, host("alice")) == []
    assert module.remembered([], before, host("alice")) == before


@pytest.mark.parametrize("now", [[], [account("alice", state="absent")]])
def test_somebody_of_a_directory_loses_what_was_given_and_is_not_closed(now: list[Entry]) -> None:
    """His keys, too, for as long as they could not be taken away."""
    there = module.Host(_MEMBERS, frozenset({"bob"}), foreign=frozenset({"alice"}))
    left = [["gpasswd", "--delete", "alice", group] for group in ("sudo", "physics")]
    assert list(module.revocations(now, known(ALICE), there)) == left
    assert module.former(now, known(ALICE), there) == ["alice"]
    after = module.remembered(now, known(ALICE), there)
    assert after == {"accounts": {"alice": {"groups": [], "home": "/home/alice"}}, "closed": []}
    # While the directory does not know him, too.
    assert list(module.revocations(now, known(ALICE), there._replace(foreign=frozenset()))) == left
    assert module.former([ALICE], known(ALICE), there) == []


def test_while_it_is_being_done_both_are_remembered() -> None:
    both = module.meanwhile([account("alice", "docker")], known(ALICE))
    assert both["accounts"]["alice"]["groups"] == ["sudo", "physics", "docker"]


def test_what_is_remembered_is_private_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(given, "DIRECTORY", tmp_path / "given")
    assert given.given("x") == {}
    given.remember("x", {"a": 1})
    assert given.given("x") == {"a": 1}
    place = tmp_path / "given" / "x.json"
    assert place.stat().st_mode & 0o077 == 0
    assert [path.name for path in place.parent.iterdir()] == ["x.json"]
    place.write_text("{")
    assert given.given("x") == {}

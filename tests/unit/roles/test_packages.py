from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.loading import load_module

plugin = load_module("playbooks/action_plugins/packages.py")

Result = dict[str, Any]


def run(
    monkeypatch: pytest.MonkeyPatch,
    name: list[str],
    answer: Result | None = None,
    *,
    check_mode: bool = False,
    state: str = "present",
    **facts: object,
) -> tuple[Result, list[Result]]:
    """The plugin's result, and what apt was told by it."""
    told: list[Result] = []

    def execute(*, module_name: str, module_args: Result, task_vars: Result) -> Result:
        assert module_name == "ansible.builtin.apt"
        assert task_vars["ansible_facts"] == facts
        told.append(module_args)
        return {"changed": True, **(answer or {})}

    task = SimpleNamespace(args={"name": name, "state": state}, async_val=0, check_mode=check_mode)
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="/tmp/here"))
    action = plugin.ActionModule(task, connection, None, None, None, None)
    monkeypatch.setattr(action, "_execute_module", execute)
    return action.run(task_vars={"ansible_facts": facts}), told


def test_what_is_there_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    result, told = run(monkeypatch, ["a", "b"], deb_packages=["a", "b", "c"])
    assert (result["changed"], result["skipped"], told) == (False, True, [])


@pytest.mark.parametrize("facts", [{}, {"deb_packages": ["a"]}])
def test_what_is_missing_is_installed_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, facts: Result
) -> None:
    result, (told,) = run(monkeypatch, ["a", "b"], **facts)
    assert told == {
        "name": ["a", "b"],
        "state": "present",
        "install_recommends": False,
        "allow_downgrade": False,
        "policy_rc_d": 101,
        "lock_timeout": 300,
    }
    assert result["deploy_manages"] == {"packages": ["a", "b"]}


def test_a_version_is_asked_for_and_may_be_older(monkeypatch: pytest.MonkeyPatch) -> None:
    result, (told,) = run(monkeypatch, ["a=1.2*"], deb_packages=["a"])
    assert told["allow_downgrade"] is True
    assert result["deploy_manages"] == {"packages": ["a"]}


def test_what_is_not_wanted_goes_with_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    _, (told,) = run(monkeypatch, ["a"], state="absent", deb_packages=["a"])
    assert told == {"name": ["a"], "state": "absent", "purge": True, "lock_timeout": 300}


def test_what_was_never_there_is_not_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    result, told = run(monkeypatch, ["a"], state="absent", deb_packages=["b"])
    assert (result["changed"], result["skipped"], told) == (False, True, [])
    assert run(monkeypatch, ["a"], state="absent")[1], "nobody said what is there"


@pytest.mark.parametrize(
    ("check_mode", "is_pending", "fails"),
    [(True, True, False), (True, False, True), (False, True, True), (False, False, True)],
)
def test_only_a_check_foresees_packages_of_a_source_to_come(
    monkeypatch: pytest.MonkeyPatch, *, check_mode: bool, is_pending: bool, fails: bool
) -> None:
    answer = {"failed": True, "changed": False, "msg": "no package matching"}
    result, _ = run(monkeypatch, ["a"], answer, check_mode=check_mode, deb_source_pending=is_pending)
    assert (result["failed"], result["changed"]) == (fails, not fails)
    assert ("deploy_manages" in result) is not fails

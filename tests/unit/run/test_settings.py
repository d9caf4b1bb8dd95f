from pathlib import Path

import pytest

from deploy.content import roles
from deploy.run import settings
from deploy.run.settings import (
    Settings,
    ansible_environment,
    default_forks,
    is_mitogen_supported,
    why_no_mitogen,
)


def test_mitogen_where_it_works() -> None:
    assert is_mitogen_supported()
    environment = ansible_environment(base={})
    assert environment["ANSIBLE_STRATEGY"] == "deploy_linear"
    assert (Path(environment["ANSIBLE_STRATEGY_PLUGINS"]) / "deploy_linear.py").is_file()


def test_openssh_where_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "version", lambda _: "2.99.1")
    environment = ansible_environment(base={})
    assert not {"ANSIBLE_STRATEGY", "ANSIBLE_STRATEGY_PLUGINS"} & set(environment)
    assert environment["ANSIBLE_PIPELINING"] == "true"
    assert "ControlPersist" in environment["ANSIBLE_SSH_ARGS"]


@pytest.mark.parametrize("core", ["2.19.14", "2.20.10", "2.21.5"])
def test_mitogen_with_every_supported_core(monkeypatch: pytest.MonkeyPatch, core: str) -> None:
    monkeypatch.setattr(settings, "version", lambda _: core)
    assert not why_no_mitogen()


def test_why_mitogen_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "version", lambda _: "2.22.0b1")
    assert "not tested with ansible-core 2.22.0b1, but with 2.19, 2.20, 2.21:" in why_no_mitogen()
    monkeypatch.undo()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert why_no_mitogen().startswith("mitogen is not installed: ")
    assert not is_mitogen_supported()


def test_the_choice_is_free() -> None:
    environment = ansible_environment(Settings(mitogen=False, forks=7), base={})
    assert not {"ANSIBLE_STRATEGY", "ANSIBLE_STRATEGY_PLUGINS"} & set(environment)
    assert environment["ANSIBLE_FORKS"] == "7"


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_the_environment_may_ask_for_ansible_as_it_is(
    monkeypatch: pytest.MonkeyPatch, value: str, *, expected: bool
) -> None:
    monkeypatch.setenv("DEPLOY_PLAIN_ANSIBLE", value)
    assert Settings().plain is expected
    assert ("ANSIBLE_STRATEGY" in ansible_environment(base={})) is not expected


def test_plain_ansible_has_no_mitogen_whatever_is_chosen() -> None:
    assert "ANSIBLE_STRATEGY" not in ansible_environment(Settings(plain=True, mitogen=True), base={})


def test_host_keys_are_checked_whatever_the_shell_says() -> None:
    base = {"ANSIBLE_HOST_KEY_CHECKING": "false", "ANSIBLE_STRATEGY": "free", "ANSIBLE_CONFIG": "/home/x.cfg"}
    environment = ansible_environment(base=base)
    assert environment["ANSIBLE_HOST_KEY_CHECKING"] == "true"
    assert environment["ANSIBLE_CONFIG"] != "/home/x.cfg"
    assert environment["ANSIBLE_STRATEGY"] != "free"


def test_only_ways_to_reach_and_unlock_hosts_are_inherited() -> None:
    base = {
        "PATH": "/bin",
        "ANSIBLE_VAULT_PASSWORD_FILE": "/v",
        "ANSIBLE_REMOTE_USER": "admin",
        "ANSIBLE_STDOUT_CALLBACK": "minimal",
        "AWX_LIB_DIRECTORY": "/x",
        "RUNNER_OMIT_EVENTS": "true",
        "ANSIBLE_LIBRARY": "/evil",
    }
    environment = ansible_environment(base=base)
    assert {name for name in base if environment.get(name) == base[name]} == {
        "PATH",
        "ANSIBLE_VAULT_PASSWORD_FILE",
        "ANSIBLE_REMOTE_USER",
    }
    assert not {"ANSIBLE_STDOUT_CALLBACK", "AWX_LIB_DIRECTORY", "ANSIBLE_LIBRARY"} & set(environment)


def test_roles_and_results_that_are_large() -> None:
    environment = ansible_environment(base={})
    assert environment["ANSIBLE_ROLES_PATH"] == str(roles())
    assert int(environment["MAX_EVENT_RES"]) > 10_000_000


@pytest.mark.parametrize(
    ("hosts", "cores", "forks"), [(1, 2, 1), (0, 2, 1), (15, 2, 15), (500, 2, 20), (500, 64, 50)]
)
def test_forks_follow_hosts_and_cores(
    monkeypatch: pytest.MonkeyPatch, hosts: int, cores: int, forks: int
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert default_forks(hosts) == forks


def test_results_say_what_a_module_was_asked_for() -> None:
    """Records are made of it, and ansible-core 2.21 leaves it away unless it is asked for."""
    assert ansible_environment(base={})["ANSIBLE_INJECT_INVOCATION"] == "true"

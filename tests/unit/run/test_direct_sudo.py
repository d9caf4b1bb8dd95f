"""Which connections of mitogen are made by one hop instead of two, and what happens where that is refused."""

from collections.abc import Callable
from typing import Any

import pytest
from ansible_mitogen import connection, services

from deploy.run.direct_sudo import Spec, join_hops, joined

PYTHON = ["/usr/bin/python3"]
PASSWORD = "made up"  # noqa: S105 - of nobody
REFUSED = "EOF on stream; last 100 lines received:\nsudo: a password is required"
LOST = "EOF on stream; last 100 lines received:\nssh: connect to host node1 port 22: No route to host"


def stack(method: str = "sudo", **other: object) -> list[Spec]:
    """As mitogen itself makes it of what Ansible knows of a host."""
    settings = {
        "remote_addr": "node1",
        "python_path": PYTHON,
        "become_user": "root",
        "become_exe": "sudo",
        "sudo_args": ["-H", "-S", "-n"],
        "host_key_checking": True,
    } | other

    class Settings:
        def __getattr__(self, name: str) -> Callable[[], object]:
            return lambda: settings.get(name)

    return [connection._connect_ssh(Settings()), getattr(connection, f"_connect_{method}")(Settings())]


class Keeper:
    """Stands in for mitogen's; it knows what it was asked for, and answers what a test says."""

    def __init__(self, *messages: str | None) -> None:
        self.messages = list(messages)
        self.asked: list[list[Spec]] = []
        self.ended: list[list[Spec]] = []

    def get(self, stack: list[Spec]) -> dict[str, Any]:
        """A connection, or why there is none."""
        self.asked.append(stack)
        message = self.messages.pop(0)
        return {"msg": message, "context": None if message else f"context {len(self.asked)}", "via": None}

    def reset(self, stack: list[Spec]) -> bool:
        """Ends a connection that was made."""
        self.ended.append(stack)
        return stack in self.asked


@pytest.fixture
def keeper() -> type[Keeper]:
    """Joins hops; a class of its own, because it is changed."""
    own = type("Own", (Keeper,), {})
    join_hops(own)
    return own


def test_ssh_starts_the_python_of_root() -> None:
    login, root = stack()
    one = joined([login, root])
    assert one is not None
    assert one["kwargs"]["python_path"] == ["sudo", "-H", "-S", "-n", "-u", "root", "--", *PYTHON]
    assert {**one, "kwargs": {**one["kwargs"], "python_path": PYTHON}} == login


@pytest.mark.parametrize(
    "hops",
    [
        stack()[:1],
        stack("su"),
        stack(become_pass=PASSWORD),
        stack(sudo_args=["-H", "-S"]),
        [*stack(), stack()[1]],
    ],
    ids=["login-alone", "su", "password", "sudo-that-may-ask", "three"],
)
def test_other_hops_stay(hops: list[Spec]) -> None:
    assert joined(hops) is None


def test_the_connection_of_root_is_that_of_the_login_too(keeper: type[Keeper]) -> None:
    mitogen = keeper(None)
    assert mitogen.get(stack=stack()) == {"msg": None, "context": "context 1", "via": "context 1"}
    assert mitogen.asked == [[joined(stack())]]


def test_where_sudo_refuses_mitogen_goes_its_own_way_from_then_on(keeper: type[Keeper]) -> None:
    mitogen = keeper(REFUSED, "sudo password is required", None)
    assert [mitogen.get(stack=stack())["msg"] for _ in range(2)] == ["sudo password is required", None]
    assert mitogen.asked == [[joined(stack())], stack(), stack()]


def test_a_host_that_is_not_reached_is_tried_once(keeper: type[Keeper]) -> None:
    mitogen = keeper(LOST)
    assert mitogen.get(stack=stack())["msg"] == LOST
    assert len(mitogen.asked) == 1


def test_a_reset_by_its_first_hop_ends_the_joined_one(keeper: type[Keeper]) -> None:
    mitogen = keeper(None)
    mitogen.get(stack=stack())
    assert [mitogen.reset(stack=stack()[:1]) for _ in range(2)] == [True, False]
    assert mitogen.ended == [[joined(stack())], stack()[:1], stack()[:1]]
    assert not mitogen.reset(stack=[])


def test_mitogen_still_lets_processes_of_tasks_ask() -> None:
    own = type("Own", (services.ContextService,), {})
    join_hops(own)
    for method in ("get", "reset"):
        ours, theirs = getattr(own, method), getattr(services.ContextService, method)
        assert ours is not theirs
        assert ours.mitogen_service__policies == theirs.mitogen_service__policies
        assert ours.mitogen_service__arg_spec == {"stack": list}


def _get_of_another(self: Keeper, spec: Spec) -> Spec:
    assert self
    return spec


@pytest.mark.parametrize("methods", [{"reset": None}, {"get": _get_of_another}])
def test_another_keeper_is_left_as_it_is(methods: dict[str, Any]) -> None:
    other: Any = type("Other", (Keeper,), methods)
    before = other.get, other.reset
    with pytest.raises(TypeError):
        join_hops(other)
    assert (other.get, other.reset) == before

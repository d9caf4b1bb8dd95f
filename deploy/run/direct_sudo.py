"""Mitogen's way to root, by one Python instead of two.

Mitogen starts a Python as the user who logs in, and through it another as root. The first costs a host and
the controller as much as the second, and here it has nothing else to do. Where sudo asks nothing, ssh can
start root's Python by itself.
"""

from collections.abc import Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any

from ansible_mitogen.services import key_from_dict

Spec = Mapping[str, Any]
"""One hop of a connection: a method of mitogen's router and its arguments."""


def joined(stack: Sequence[Spec]) -> Spec | None:
    """Both hops in one, where the second is sudo that asks nothing; else None."""
    if [hop["method"] for hop in stack] != ["ssh", "sudo"]:
        return None
    login, root = (hop["kwargs"] for hop in stack)
    if root["password"] or "-n" not in root["sudo_args"]:
        return None
    sudo = [root["sudo_path"] or "sudo", *root["sudo_args"], "-u", root["username"] or "root", "--"]
    return {"method": "ssh", "kwargs": {**login, "python_path": [*sudo, *root["python_path"]]}}


def join_hops(keeper: type[Any]) -> None:
    """Has mitogen's keeper of connections, its ContextService, join hops first.

    Where sudo refuses (it wants a password after all, or a terminal), mitogen's own way follows, with the
    messages that it has for that. Raises AttributeError or TypeError where mitogen's has other methods.
    """
    get, reset = keeper.get, keeper.reset
    for method in (get, reset):
        if [*signature(method).parameters] != ["self", "stack"]:
            raise TypeError(f"{method.__qualname__}{signature(method)}")
    of_login: dict[str, Spec] = {}
    refusing: set[str] = set()

    def get_joined(self: object, stack: list[Spec]) -> dict[str, Any]:
        spec, login = joined(stack), key_from_dict(**stack[0])
        if spec is None or login in refusing:
            return dict(get(self, stack=stack))
        answer: dict[str, Any] = get(self, stack=[spec])
        if not answer["msg"]:
            of_login[login] = spec
            return {**answer, "via": answer["context"]}
        if "sudo" not in answer["msg"]:
            return answer
        refusing.add(login)
        return dict(get(self, stack=stack))

    def reset_joined(self: object, stack: list[Spec]) -> bool:
        spec = of_login.pop(key_from_dict(**stack[0]), None) if stack else None
        was_joined = spec is not None and bool(reset(self, stack=[spec]))
        return bool(reset(self, stack=stack)) or was_joined

    # With what mitogen notes on them: who may call them, with what.
    keeper.get, keeper.reset = wraps(get)(get_joined), wraps(reset)(reset_joined)

"""When a host that says nothing any more is given up: after a minute, however it is reached.

A machine without power, or without its network, ends no connection: a run would wait for what it asked of it.
So ssh asks whether the host is still there. What a site says of this in its own options of ssh comes first.
"""

from collections.abc import Callable, MutableMapping
from inspect import signature
from typing import Any

_SECONDS = 15
_UNANSWERED = 3
Hop = dict[str, Any]
"""One hop of a connection: a method of mitogen's router and its arguments."""


def keepalive(seconds: int | str | None = None, unanswered: int | str | None = None) -> list[str]:
    """Options of ssh, which go behind all others: of options the first one counts (ssh_config(5))."""
    interval = _SECONDS if seconds is None else seconds
    count = _UNANSWERED if unanswered is None else unanswered
    return ["-o", f"ServerAliveInterval={interval}", "-o", f"ServerAliveCountMax={count}"]


def give_up_silent(methods: MutableMapping[str, Callable[[Any], Hop]], options: type[Any]) -> None:
    """Has mitogen do so, by its ``methods`` to connect; ``options`` are those that its ssh takes.

    By itself mitogen waits five minutes, and puts that before the site's own options. Raises KeyError or
    TypeError where mitogen's has other parts.
    """
    connect = methods["ssh"]
    if not {"keepalive_enabled", "ssh_args"} <= {*signature(options).parameters}:
        raise TypeError(f"{options.__qualname__}{signature(options)}")

    def connect_ssh(spec: Any) -> Hop:  # noqa: ANN401 - mitogen has no types
        hop = connect(spec)
        said = keepalive(spec.mitogen_ssh_keepalive_interval(), spec.mitogen_ssh_keepalive_count())
        own = {"keepalive_enabled": False, "ssh_args": [*hop["kwargs"]["ssh_args"], *said]}
        return {**hop, "kwargs": {**hop["kwargs"], **own}}

    for name, method in methods.items():
        if method is connect:
            methods[name] = connect_ssh

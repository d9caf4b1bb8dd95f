"""What became of machines that were made ready, as text and for programs."""

from collections.abc import Iterator, Mapping
from typing import Any

from deploy.engine.bootstrap import Readied


def key_lines(keys: Mapping[str, str]) -> Iterator[str]:
    """The host keys that somebody has to know."""
    width = max(map(len, keys))
    for host, key in keys.items():
        yield f"{host:<{width}}  {key}"


def readied_lines(came: Readied, next_command: str, again: str) -> Iterator[str]:
    """A line per host, and what to type next."""
    hosts = {**came.done, **came.failed, **came.silent}
    width = max(map(len, hosts), default=0)
    for host, did in came.done.items():
        yield f"{host:<{width}}  ready: {', '.join(did) or 'it was'}"
    for host, why in came.failed.items():
        yield f"{host:<{width}}  failed: {why}"
    for host, why in came.silent.items():
        yield f"{host:<{width}}  not reached: {why}"
    yield f"next: {again if came.failed or came.silent else next_command}"


def as_json(came: Readied) -> dict[str, Any]:
    """The same for programs."""
    return {
        "ready": {host: list(did) for host, did in came.done.items()},
        "failed": dict(came.failed),
        "not_reached": dict(came.silent),
        "exit_code": int(came.exit_code),
    }

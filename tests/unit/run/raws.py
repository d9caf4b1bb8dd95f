"""Raw events as ansible-runner hands them over, in short."""

from typing import Any

CREATED = "2026-11-21T10:00:00+00:00"
AT = 1795255200.0


def raw(kind: str, stdout: str = "", **data: object) -> dict[str, Any]:
    """A raw event with this event data."""
    return {
        "event": kind,
        "uuid": "u",
        "counter": 1,
        "stdout": stdout,
        "created": CREATED,
        "event_data": data,
    }


def result(kind: str = "ok", host: str = "node1", **data: object) -> dict[str, Any]:
    """A raw result of the task ``munge : Install`` on a host."""
    whole = {
        "host": host,
        "duration": 1.25,
        "res": {},
        "play": "Base",
        "role": "munge",
        "task": "Install",
        "task_path": "/roles/munge/tasks/main.yml:3",
        **data,
    }
    return raw(f"runner_on_{kind}") | {"event_data": whole}

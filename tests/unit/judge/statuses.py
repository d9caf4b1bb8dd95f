"""Answers of the module node_status, as events bring them."""

from typing import Any

from deploy.judge.node_status import Service
from deploy.run.events import HostResult, Status

NOW = 1_000_000.0


def service(
    name: str,
    active: str = "active",
    *,
    load: str = "loaded",
    result: str = "success",
    seconds: float = 180.0,
) -> Service:
    return Service(name, load, active, result, seconds)


def slurm_node(
    state: str = "IDLE", reason: str = "", by: str = "", ago: float | None = None
) -> dict[str, Any]:
    return {"state": state, "reason": reason, "by": by, "since": None if ago is None else NOW - ago}


def answer(**changes: object) -> dict[str, Any]:
    """What a healthy host says, with changes."""
    return {
        "services": [_plain("chrony"), _plain("munge")],
        "failed_units": [],
        "shortfalls": None,
        "clock": {"synchronized": True, "ahead": 0.00001},
        "slurm": None,
        "ahead": [-0.004, 0.009],
    } | changes


def _plain(name: str) -> dict[str, Any]:
    return {"name": name, "load": "loaded", "active": "active", "result": "success", "seconds": 180.0}


def answered(host: str, **changes: object) -> HostResult:
    return HostResult(NOW, host, "Status", "", "Ask the hosts", "", Status.OK, 1.0, answer=answer(**changes))


def lost(host: str, message: str = "No route to host", status: Status = Status.UNREACHABLE) -> HostResult:
    return HostResult(NOW, host, "Status", "", "Ask the hosts", "", status, 1.0, message)

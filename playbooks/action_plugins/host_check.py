"""Action plugin of host_check: compares the clocks of both ends, and fails when something must be fixed."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible.plugins.action import ActionBase

_MINUTE = 60.0
_BY_HAND = 'from here: ssh HOST sudo date --set "@$(date +%s)"'
_ALL_ALIKE = "; if all hosts differ alike, it is this machine's clock: timedatectl"


@dataclass(frozen=True)
class Exchange:
    """When a question was sent and its answer received, by our clock; the host's clock in between."""

    sent: float
    began: float
    ended: float
    received: float

    @property
    def certain(self) -> float:
        """The least by which the clocks differ, however long the way was; positive when theirs is ahead."""
        earliest, latest = self.ended - self.received, self.began - self.sent
        return earliest if earliest > 0 else min(latest, 0.0)

    @property
    def likely(self) -> float:
        """By how much they differ: the answer takes no time, the question may open a connection first."""
        return self.ended - self.received


def clock_finding(exchange: Exchange, limits: Mapping[str, Any], service: str) -> dict[str, str] | None:
    """What is wrong with a host's clock.

    ``service`` is what its time service says of itself, empty when it has none. ``is_steered`` of the limits
    is false where the site's variables forbid chrony to set the clock.
    """
    if abs(exchange.certain) < limits["warning_seconds"]:
        return None
    off = abs(exchange.likely)
    direction = "ahead of" if exchange.certain > 0 else "behind"
    message = f"the clock is {_shown(off)} {direction} the one of the machine that runs deploy"
    severity, hint = "error", _BY_HAND
    if off >= limits["munge_seconds"]:
        message += f"; munge refuses credentials {limits['munge_seconds']} s old or from the future"
    elif off < limits["error_seconds"] or (limits["is_steered"] and service != "unsynchronized"):
        severity = "warning"
        hint = "wait, then check again: chrony sets it" if limits["is_steered"] else _BY_HAND
    elif limits["is_steered"]:
        message += ", and chrony there has no time server that answers"
        hint = "on the machine: chronyc sources"
    else:
        message += ", and nothing sets it: time_sync_options says that chrony must not"
    return {
        "severity": severity,
        "reference": "clock-off",
        "message": message,
        "hint": hint + _ALL_ALIKE,
    }


def _shown(seconds: float) -> str:
    """In whole seconds or minutes: the answer of a busy machine is on its way for tenths of a second."""
    return f"about {seconds:.0f} s" if seconds < _MINUTE else f"{math.floor(seconds / _MINUTE)} min"


class ActionModule(ActionBase):  # type: ignore[misc]
    """Runs the module between two looks at this machine's clock."""

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """The module's answer, completed; a failure when one of its findings is an error."""
        super().run(tmp, task_vars)
        sent = time.time()
        result: dict[str, Any] = self._execute_module(task_vars=task_vars)
        received = time.time()
        # What was asked for is long, and known.
        result.pop("invocation", None)
        clock = result.pop("clock", None)
        if clock is None:
            return result
        exchange = Exchange(sent, clock["began"], clock["ended"], received)
        off = clock_finding(exchange, self._task.args["expected"]["clock"], clock["service"])
        answer = result["deploy_answer"]
        if off:
            answer["findings"].append(off)
        else:
            answer["checked"].append("clock")
        errors = [finding for finding in answer["findings"] if finding["severity"] == "error"]
        if errors:
            result["failed"] = True
            result["msg"] = "\n".join(f"{finding['message']} -> {finding['hint']}" for finding in errors)
        return result

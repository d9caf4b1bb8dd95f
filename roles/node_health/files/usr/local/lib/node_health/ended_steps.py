"""Steps that had ended, and that Slurm took for ones that cannot be killed.

A step's slurmstepd tells slurmctld of its end once a minute until one answers. Where slurmd is to end that
step meanwhile, as a slurmctld that took over does not know its job, slurmstepd counts to
UnkillableStepTimeout once more, and then drains the node ("Kill task failed"), though the last process was
gone before it first told (24.11.5 seen; slurmstepd/mgr.c and step_terminate_monitor.c are so in 22.05 and
26.05, too). That drain is taken back here. Where a process is left, slurmstepd does not come to telling.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from slurm_node import read_node, resume
from slurmd_log import LOG, last_lines

_REASON = "Kill task failed"
_BEGIN = r"\[(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\S*\] \[(?P<step>\d+\.\S+)\] (?:error: )?"
_TELLS = "Rank .* failed sending step completion message directly to slurmctld|Retrying job complete RPC for "
_GIVES_UP = r"\*\*\* .* DUE TO JOB NOT ENDING WITH SIGNALS"
_LINE = re.compile(f"{_BEGIN}(?:(?P<tells>{_TELLS})|{_GIVES_UP})")
_LATE = timedelta(minutes=15)
"""How much later than slurmstepd gave up the node may be drained: slurmctld may have been away, or hung."""
_EARLY = timedelta(seconds=30)
"""How much earlier, by another host's clock."""


def given_up(lines: Sequence[str]) -> list[tuple[datetime, bool]]:
    """When a step was given up (local time), and whether it had ended, by the lines of the log."""
    telling, found = set(), []
    for match in filter(None, map(_LINE.match, lines)):
        if match["tells"]:
            telling.add(match["step"])
        else:
            found.append((datetime.fromisoformat(match["at"]), match["step"] in telling))
    return found


def is_due(found: Sequence[tuple[datetime, bool]], since: str) -> bool:
    """Whether such steps, and no others, drained a node that is drained since then, as Slurm writes it.

    Slurm keeps the reason that it gave first, so what was given up later counts, too.
    """
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        return False
    causes = [(at, had_ended) for at, had_ended in found if at >= moment - _LATE]
    return any(at <= moment + _EARLY for at, _ in causes) and all(had_ended for _, had_ended in causes)


def take_back(node: str, log: Path = LOG) -> str:
    """Has the node go on where it is due; returns what was done, or empty. Raises SlurmError."""
    found = given_up(last_lines(log, _LINE))
    if not found:
        return ""
    state = read_node(node)
    if not state.is_drained or state.reason != _REASON or not is_due(found, state.since):
        return ""
    resume(node, state)
    return f'resumed: Slurm drained it for "{_REASON}", and the step that it gave up had ended'

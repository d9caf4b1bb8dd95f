"""Starts of jobs that this node's slurmd refused, because slurmctld lost what it did here before it died.

slurmctld saves its queue some seconds after a change. One that takes over, or starts again, does not know of
a job whose start was not saved, and starts it, or another one to which it gave the number of a lost one. This
node's slurmd refuses that: as long as the first copy runs, or where that was killed in the same second, or
where the two starts meet. It also refuses a start of which the second half was never sent. Slurm then drains
the node, holds the job, or ends it as failed without having run it, until somebody takes that back, which is
done here. Where that is too early slurmd refuses once more, and it is done once more.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from slurm_node import NodeState, SlurmError, read_node, resume, scontrol
from slurmd_log import LOG, last_lines

HANDLED = Path("/run/node_health_refused_starts")
"""The last line of the log that was acted upon."""
_MAY_MATTER = re.compile("do not launch|REQUEST_LAUNCH_PROLOG|File exists|prolog failed")
_BEGIN = r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\S*\] (?:\[\d+\.batch\] )?error: "
_JOB = r"(?:[Jj]ob |JobId=)(\d+)(?: SLUID=\S+)?"
_REFUSED = {
    f"{_JOB} already running, do not launch second copy": "Duplicate jobid",
    f"Waiting for {_JOB} REQUEST_LAUNCH_PROLOG notification failed": "Prolog error",
    rf"batch script setup failed for {_JOB} on \S+: File exists": "",
    f"{_JOB} already killed, do not launch batch job": "",
}
"""What slurmd says (22.05 to 26.05), and the reason with which Slurm drains the node for that, if it does."""
_PROLOG_FAILED = re.compile(rf"{_BEGIN}\S+ (?:\S+ )?prolog failed status=")
"""A prolog that ran, and failed: Slurm's reason for the drain is the same one."""
_HELD = re.compile(r" JobState=PENDING Reason=launch_failed_requeued_held ")
_ENDED = re.compile(
    r" JobState=(?:FAILED|COMPLETING) .* Requeue=1 .* ExitCode=1:0 RunTime=00:00:0\d .* EndTime=(\S+) "
)
_SECONDS_TO_DRAIN = 2.0
"""What slurmctld does when slurmd has refused is done by then."""
_APART = timedelta(seconds=30)
"""How far what slurmctld did may be from what slurmd says: it is done at once, by another host's clock."""


@dataclass(frozen=True)
class Refusal:
    """A start that was refused. ``at`` is local time; ``reason`` that of the node's drain, or empty."""

    line: str
    job: str
    at: datetime
    reason: str

    def is_time_of(self, moment: str) -> bool:
        """Whether something happened by it that Slurm says to have happened then."""
        try:
            return abs(datetime.fromisoformat(moment) - self.at) <= _APART
        except ValueError:
            return False


def refused(lines: Sequence[str], handled: Path) -> list[Refusal]:
    """What slurmd refused since the last time, by the lines of its log."""
    last = handled.read_text(encoding="utf-8") if handled.exists() else ""
    found = [refusal for line in lines for refusal in _parsed(line)]
    known = [refusal.line for refusal in found]
    return found[known.index(last) + 1 :] if last in known else found


def is_due(state: NodeState, refusals: Sequence[Refusal], lines: Sequence[str]) -> bool:
    """Whether Slurm drained the node for one of these, and nobody has added anything to the reason."""
    causes = [each for each in refusals if each.reason == state.reason and each.is_time_of(state.since)]
    failed = [match[1] for match in map(_PROLOG_FAILED.match, lines) if match]
    return state.is_drained and any(not any(map(each.is_time_of, failed)) for each in causes)


def is_held(shown: str) -> bool:
    """Whether a job is held because its launch failed: `scontrol --oneliner show job`."""
    return bool(_HELD.search(shown))


def has_ended(shown: str, refusal: Refusal) -> bool:
    """Whether Slurm took the job for failed because this was refused, so that it never ran."""
    found = _ENDED.search(shown)
    return bool(found) and refusal.is_time_of(found[1])


def take_back(node: str, log: Path = LOG, handled: Path = HANDLED) -> str:
    """Has the node and its jobs go on; returns what was done, or empty. Raises SlurmError."""
    lines = last_lines(log, _MAY_MATTER)
    refusals = refused(lines, handled)
    if not refusals:
        return ""
    time.sleep(_SECONDS_TO_DRAIN)
    done = []
    state = read_node(node)
    if is_due(state, refusals, lines):
        resume(node, state)
        done.append(f'resumed: Slurm drained it for "{state.reason}"')
    done += filter(None, map(_go_on, {refusal.job: refusal for refusal in refusals}.values()))
    handled.write_text(refusals[-1].line, encoding="utf-8")
    return "; ".join(done)


def _go_on(refusal: Refusal) -> str:
    try:
        shown = " ".join(scontrol("--oneliner", "show", "job", refusal.job).split())
    except SlurmError:
        return ""  # it has ended, and is forgotten
    if is_held(shown):
        scontrol("release", refusal.job)
        return f"released job {refusal.job}, which Slurm held for that"
    if has_ended(shown, refusal):
        scontrol("requeue", refusal.job)
        return f"requeued job {refusal.job}, which Slurm took for failed for that"
    return ""


def _parsed(line: str) -> list[Refusal]:
    for said, reason in _REFUSED.items():
        found = re.match(_BEGIN + said, line)
        if found:
            return [Refusal(line, found[2], datetime.fromisoformat(found[1]), reason)]
    return []

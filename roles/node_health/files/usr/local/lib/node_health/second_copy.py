"""Jobs that slurmctld started here once more, because it lost that they run when it died.

slurmctld saves its queue some seconds after a change. One that takes over, or starts again, does not know of
a job whose start was not saved, and starts it, or another one to which it gave the number of a lost one. This
node's slurmd refuses that as long as the first copy runs. Slurm ends that copy when the node registers, but
drains the node ("Duplicate jobid") and holds the job ("launch failed requeued held") until somebody takes
that back, which is done here. Where that is too early slurmd refuses once more, and it is done once more.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from slurm_node import NodeState, SlurmError, read_node, resume, scontrol

LOG = Path("/var/log/slurm/slurmd.log")
HANDLED = Path("/run/node_health_second_copies")
"""The last line of the log that was acted upon."""
_REFUSED = re.compile(rb"^.*(?:Job |JobId=)(\d+) already running, do not launch second copy.*$", re.MULTILINE)
_REASON = "Duplicate jobid"
_HELD = re.compile(r" JobState=PENDING Reason=launch_failed_requeued_held ")
_TAIL_BYTES = 1 << 20
_SECONDS_TO_DRAIN = 2.0
"""What slurmctld does when slurmd has refused is done by then."""


def refused(log: Path, handled: Path) -> tuple[list[str], bytes]:
    """The numbers of jobs that slurmd refused since the last time, and the last line that says so."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read()
    except FileNotFoundError:
        return [], b""
    last = handled.read_bytes() if handled.exists() else b""
    found = [*_REFUSED.finditer(text)]
    lines = [match[0] for match in found]
    new = found[lines.index(last) + 1 :] if last in lines else found
    return [*dict.fromkeys(match[1].decode() for match in new)], lines[-1] if new else b""


def is_due(state: NodeState) -> bool:
    """Whether Slurm drained the node for that, and nobody has added anything to it."""
    return state.is_drained and state.reason == _REASON


def is_held(shown: str) -> bool:
    """Whether a job is held because its launch failed: `scontrol --oneliner show job`."""
    return bool(_HELD.search(" ".join(shown.split())))


def take_back(node: str, log: Path = LOG, handled: Path = HANDLED) -> str:
    """Has the node and its job go on; returns what was done, or empty. Raises SlurmError."""
    jobs, last = refused(log, handled)
    if not jobs:
        return ""
    time.sleep(_SECONDS_TO_DRAIN)
    done = []
    state = read_node(node)
    if is_due(state):
        resume(node, state)
        done.append(f'resumed: Slurm drained it for "{_REASON}"')
    done += [f"released job {job}, which Slurm held for that" for job in jobs if _released(job)]
    handled.write_bytes(last)
    return "; ".join(done)


def _released(job: str) -> bool:
    try:
        is_so = is_held(scontrol("--oneliner", "show", "job", job))
    except SlurmError:
        return False  # it has ended, and is forgotten
    if is_so:
        scontrol("release", job)
    return is_so

"""Batch jobs whose script has ended here, of which slurmctld lost that when it died.

slurmd keeps a step beside a job's script (``extern``) until slurmctld has it ended. Where that dies, or is
cut off, after the script has ended and before, the next one takes the job for running as long as its node has
a step of it: until its time limit, which may be none (24.11.5 seen). A job of which its node has nothing
Slurm starts anew, or ends where that was not wanted (`--no-requeue`). That is done here.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from slurm_node import SlurmError, ask, scontrol

SPOOL = Path("/var/spool/slurmd")
RECORD = Path("/run/node_health_lost_ends")
"""Since when a job has no script here, seconds of this boot; null where it never has one."""
_BATCH, _EXTERN = "4294967291", "4294967292"
"""The two steps in slurmd's directory: SLURM_BATCH_SCRIPT and SLURM_EXTERN_CONT of slurm.h."""
_WORD = re.compile(r"\b(JobState|BatchFlag|BatchHost|Requeue)=(\S*)")
_SURE_SECONDS = 300.0
"""A script that begins after a prolog, or whose end is just being dealt with, has this long."""


def without_script(node: str, spool: Path) -> dict[str, str]:
    """The jobs that have a step here and no script: number by number and start of that step."""
    steps = {}
    for path in spool.glob(f"{node}_*.{_EXTERN}"):
        job = path.name[len(node) + 1 : -len(_EXTERN) - 1]
        try:
            if job.isdigit() and not (spool / f"{node}_{job}.{_BATCH}").exists():
                steps[f"{job} {path.stat().st_mtime_ns}"] = job
        except FileNotFoundError:
            continue  # it has just ended
    return steps


def take_back(node: str, spool: Path = SPOOL, record: Path = RECORD) -> str:
    """Has such jobs started anew, or ended; returns what was done, or empty. Raises SlurmError."""
    steps = without_script(node, spool)
    known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    now = time.monotonic()
    since = {step: known.get(step, now) for step in steps}
    done = []
    for step, first in since.items():
        if first is not None and now - first >= _SURE_SECONDS:
            said = _settle(node, steps[step])
            done += filter(None, [said])
            since[step] = now if said else None
    if since != known:
        record.write_text(json.dumps(since), encoding="utf-8")
    return "; ".join(done)


def _settle(node: str, job: str) -> str:
    try:
        words = dict(_WORD.findall(scontrol("--oneliner", "show", "job", job)))
    except SlurmError:
        return ""  # it has ended, and is forgotten
    if words.get("JobState") != "RUNNING" or words.get("BatchFlag") == "0" or words.get("BatchHost") != node:
        return ""
    if words.get("Requeue") == "1":
        scontrol("requeue", job)
        return f"requeued job {job}: its script has ended here, and slurmctld lost that"
    ask("scancel", job)
    return (
        f"cancelled job {job}: its script has ended here, slurmctld lost that, and it is not to be requeued"
    )

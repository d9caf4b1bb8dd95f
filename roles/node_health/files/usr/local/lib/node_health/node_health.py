#!/usr/bin/python3
"""Slurm's HealthCheckProgram: drains this node when it is not fit for jobs, resumes what it drained itself.

Nobody else's reason is touched, but those that Slurm gives for its own loss of memory (``refused_starts``,
``ended_steps``; ``lost_ends`` has what it does to jobs).

``node_health`` is what slurmd runs. ``node_health --show`` says what is wrong and changes nothing; with
``--json`` it gives each fault as its kind, what it is of, and the words, for programs.
"""

from __future__ import annotations

import json
import os
import sys
import syslog
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import ended_steps
import lost_ends
import refused_starts
from health_checks import Checks, Fault
from slurm_node import Action, SlurmError, act, decide, read_node

SETTINGS = Path("/etc/node_health.json")
RECORD = Path("/run/node_health")
"""Whether this node was healthy when Slurm was last asked: a healthy node does not ask every time."""
_SECOND_LOOK = 2.0
"""A service that is being restarted is not ill."""
_SECONDS_TO_LOOK = 43.0
"""After a minute slurmd kills all of it; the wait for the second look and the answers of Slurm come first."""


def find_faults(checks: Checks) -> list[Fault]:
    """What is wrong, and still is a moment later; what there is no time to look at again counts."""
    first = checks.faults()
    if not first:
        return []
    time.sleep(_SECOND_LOOK)
    again = checks.faults()
    again += [fault for fault in first if fault.kind in checks.late and fault not in again]
    return again if set(first) & set(again) else []


def settle(node: str, faults: Sequence[str], late: Collection[str], record: Path) -> str:
    """Drains or resumes the node where that is due; returns what was done, or empty.

    A node of which something is not known, as ``late`` says, is not taken for healthy.
    """
    if not faults and (late or record.exists()):
        return ""
    state = read_node(node)
    action = decide(faults, state)
    if action is not Action.NOTHING:
        act(action, node, faults, state)
    if faults:
        record.unlink(missing_ok=True)
    # Whoever else holds the node may put back the drain of before when he lets go.
    elif action is Action.RESUME or not state.is_held:
        record.touch()
    return {
        Action.DRAIN: "drained: " + "; ".join(faults),
        Action.RESUME: "resumed: nothing is wrong any more",
    }.get(action, "")


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 in any case when slurmd asks: with another one it would wait before it registers."""
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    os.environ["LC_ALL"] = "C"
    os.environ["SLURM_TIME_FORMAT"] = "standard"
    settings = json.loads(SETTINGS.read_text(encoding="utf-8"))
    if arguments in (["--show"], ["--show", "--json"]):
        found = Checks(settings).faults()
        lines = [json.dumps(found)] if len(arguments) > 1 else [str(fault) for fault in found]
        sys.stdout.write("".join(f"{line}\n" for line in lines or ["nothing is wrong"]))
        return 1 if found else 0
    if arguments:
        sys.stderr.write(__doc__ or "")
        return 2
    syslog.openlog("node_health")
    checks = Checks(settings, _SECONDS_TO_LOOK)
    faults = [str(fault) for fault in find_faults(checks)]
    for remark in dict.fromkeys(checks.remarks):
        syslog.syslog(syslog.LOG_WARNING, remark)
    done = []
    try:
        if not faults:
            done.append(refused_starts.take_back(settings["node"]))
            done.append(ended_steps.take_back(settings["node"]))
        done.append(lost_ends.take_back(settings["node"]))
        done.append(settle(settings["node"], faults, checks.late, RECORD))
    except SlurmError as problem:
        done.append(f"Slurm could not be asked ({problem}); faults: {'; '.join(faults) or 'none'}")
    for words in filter(None, done):
        syslog.syslog(syslog.LOG_NOTICE, words)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/python3
"""Tells slurmctld which nodes it may switch off: the site's, and none while deploy changes the cluster.

slurm.conf excepts all nodes (SuspendExcNodes), so that a slurmctld which starts, or reads it anew, switches
none off before it is told to. A timer runs this with the nodes that are never switched off; a run of deploy
does without them when it begins. Another list, given to slurmctld by hand, stays until such a run.
"""

from __future__ import annotations

import fcntl
import re
import socket
import subprocess
import sys
from pathlib import Path

CONFIGURATION = "/etc/slurm/slurm.conf"
LOCK = "/run/deploy-nodes.lock"
"""Shared by runs of deploy that need the nodes, for as long as they go on: deploy/run/holder.py."""
SECONDS = 10
_IN_FILE = re.compile(r"^SuspendExcNodes=(\S*)", re.MULTILINE)
_IN_FORCE = re.compile(r"^SuspendExcNodes\s*=\s*(\S+)", re.MULTILINE)
_UP = re.compile(r"^Slurmctld\(\S+\) at (\S+) is UP", re.MULTILINE)
_NONE = "(null)"


def wanted(all_nodes: str, in_force: str, excepted: str | None, *, is_held: bool) -> str:
    """Which nodes are to be excepted: all of them, those of the site, or as it is."""
    if is_held:
        return all_nodes
    return excepted if excepted is not None and in_force == all_nodes else in_force


def _scontrol(*arguments: str) -> str:
    """What it prints; it would try for minutes to reach a slurmctld that is not there."""
    command = ["scontrol", *arguments]
    return subprocess.run(command, timeout=SECONDS, check=True, stdout=subprocess.PIPE, text=True).stdout


def main(excepted: str | None) -> None:
    """Looks at what is in force, and changes it where it is to be another."""
    with Path(LOCK).open("w", encoding="utf-8") as file:
        try:
            # Who begins to need the nodes waits for what is decided here.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            bring(excepted, is_held=True)
        else:
            bring(excepted, is_held=False)


def bring(excepted: str | None, *, is_held: bool) -> None:
    """Has slurmctld except what is wanted; each controller speaks for the slurmctld that is its own."""
    all_nodes = _IN_FILE.search(Path(CONFIGURATION).read_text(encoding="utf-8"))
    try:
        said = _scontrol("show", "config")
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return  # No slurmctld, which others say: nobody switches anything off.
    leading, found = _UP.search(said), _IN_FORCE.search(said)
    if not (all_nodes and found and leading and leading[1] == socket.gethostname().partition(".")[0]):
        return
    in_force = "" if found[1] == _NONE else found[1]
    other = wanted(all_nodes[1], in_force, excepted, is_held=is_held)
    if other != in_force:
        _scontrol("update", f"SuspendExcNodes={other}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)

"""What a controller is among several: whether it leads, stands by, or has to wait for another one."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

from ansible.module_utils.slurm_conf import controllers_of, parse_conf
from ansible.module_utils.slurm_state import as_slurm

_HEARTBEAT = "heartbeat"
"""In the state, by the slurmctld that leads: when, and its place in slurm.conf, as two big-endian 64 bits."""


def this_host() -> str:
    """The name by which slurmctld finds itself in slurm.conf."""
    return socket.gethostname().partition(".")[0]


def leader(directory: str, controllers: Sequence[str]) -> str:
    """Which controller wrote the last heartbeat; empty where nobody did, or it cannot be read."""
    with contextlib.suppress(OSError, KeyError, struct.error, IndexError), as_slurm():
        _, place = struct.unpack(">QQ", (Path(directory) / _HEARTBEAT).read_bytes()[:16])
        return controllers[place]
    return ""


class Standing:
    """A controller by the slurm.conf that it runs with, and by the one that it is to take.

    ``follows`` is None for the first one, and for another whether the first one took the same in this run.
    """

    def __init__(self, before: str, after: str, *, runs: bool, follows: bool | None) -> None:
        self.name = this_host()
        self.runs = runs
        had, has = controllers_of(before), controllers_of(after)
        self.others = [name for name in had if name != self.name]
        """Those that it knows by now."""
        self.gone = [name for name in self.others if name not in has]
        """Those of them that are controllers no more."""
        is_alone = not self.others
        state = parse_conf(before).get("statesavelocation", "")
        self.leads = runs and (is_alone or leader(state, had) == self.name)
        self.stands_by = follows is not None and not self.leads
        self.waits = self.stands_by and follows is False

"""What a controller is among several: whether it leads, stands by, or has to wait for another one."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ansible.module_utils.slurm_conf import controllers_of, parse_conf
from ansible.module_utils.slurm_state import as_slurm

_HEARTBEAT = "heartbeat"
"""In the state, by the slurmctld that leads."""
_BEAT = struct.Struct(">QQ")
"""When, and its place in slurm.conf."""
_TIMEOUT = "120"
_SLACK_SECONDS = 3


def this_host() -> str:
    """The name by which slurmctld finds itself in slurm.conf."""
    return socket.gethostname().partition(".")[0]


def beat(directory: str) -> tuple[int, int] | None:
    """When a controller led last, and its place in slurm.conf; None where none did, or it cannot be read."""
    for _ in range(3):  # a new one takes the place of the old one just now
        with contextlib.suppress(OSError, KeyError, struct.error), as_slurm():
            when, place = _BEAT.unpack((Path(directory) / _HEARTBEAT).read_bytes()[: _BEAT.size])
            return int(when), int(place)
        time.sleep(0.1)
    return None


class Standing:
    """A controller by the slurm.conf that it runs with, and by the one that it is to take.

    By the one that is ``in_place`` a heartbeat is read, which says a place and no name; ``is_leaders`` where
    the one that leads has that list, too.
    ``follows`` is None for the first one, and for another whether the first one took the same in this run.
    ``is_given``: the cluster was given the same before, and no other since.
    """

    def __init__(
        self,
        before: str,
        after: str,
        in_place: str,
        *,
        runs: bool,
        follows: bool | None,
        is_given: bool = False,
        is_leaders: bool = True,
    ) -> None:
        self.name = this_host()
        self.runs = runs
        had, has = controllers_of(before), controllers_of(after)
        self.others = [name for name in had if name != self.name]
        """Those that it knows by now."""
        self.knows_itself = self.name in had
        """Whether it is a controller by that, and not what a client of the cluster has."""
        self.gone = [name for name in self.others if name not in has]
        """Those of them that are controllers no more."""
        conf = parse_conf(in_place)
        self._places, self._is_leaders = controllers_of(in_place), is_leaders
        self._state = conf.get("statesavelocation", "")
        self._timeout = int(conf.get("slurmctldtimeout", _TIMEOUT))
        is_alone = not self.others
        self.leads = runs and (is_alone or self._leader() == self.name)
        self.catches_up = is_given and not runs
        """Whether it takes what another one leads with already, so that nothing is lost by it."""
        self._follows = follows if follows is None else follows or is_given

    @property
    def stands_by(self) -> bool:
        """Whether it takes what the one that leads took."""
        return self._follows is not None and not self.leads

    @property
    def waits(self) -> bool:
        """Whether that one has not taken it."""
        return self.stands_by and not self._follows

    def lead(self) -> None:
        """From now on it is the one that leads: nobody else is there."""
        self.leads = True

    def who_beats(self, names: Sequence[str], sleep: Callable[[float], None] = time.sleep) -> list[str]:
        """Which of these leads, though it may answer nobody here; it is waited for its next heartbeat."""
        before = beat(self._state)
        if not self._is_leaders or self._leader() not in names:
            return []
        # As often as slurmctld itself writes it.
        sleep(min(self._timeout // 4, 30) + _SLACK_SECONDS)
        after, leader = beat(self._state), self._leader()
        return [leader] if after != before and leader in names else []

    def _leader(self) -> str:
        """Which controller wrote the last heartbeat; empty where nobody did."""
        found = beat(self._state)
        return self._places[found[1]] if found and found[1] < len(self._places) else ""

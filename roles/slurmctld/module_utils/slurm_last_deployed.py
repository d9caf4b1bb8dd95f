"""By what controllers know whether they have the configuration that the cluster was given last.

The state has the ids of those with which a slurmctld may lead: the one that was given last, and while a run
is at work the one before, so that whoever is left when it is cut off can lead. Each controller keeps the id
of its own. What was away finds another one in the state, and does not start (``may_start.py``).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ansible.module_utils.durable import replace_file
from ansible.module_utils.slurm_standing import Standing
from ansible.module_utils.slurm_state import LAST_DEPLOYED, as_slurm


def id_of(files: Mapping[str, str]) -> str:
    """What a configuration is known by: the same one, given again, is the same."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


class LastDeployed:
    """What the state says of the configuration, and what this controller has."""

    def __init__(self, state: Path, record: Path) -> None:
        self._shared = state / LAST_DEPLOYED
        self._own = record / LAST_DEPLOYED

    def allowed(self) -> list[str]:
        """With which ones a slurmctld may lead, the last one first; none where nobody said it yet."""
        try:
            with as_slurm():
                return self._shared.read_text(encoding="utf-8").split()
        except (OSError, KeyError):  # no state yet, or no user slurm
            return []

    def allow(self, ids: Sequence[str]) -> None:
        """Says so, where it is not said."""
        if [*ids] == self.allowed():
            return
        with as_slurm():
            if ids:
                replace_file(self._shared, "".join(f"{each}\n" for each in ids).encode(), 0o600)
            else:
                self._shared.unlink(missing_ok=True)

    def own(self) -> str:
        """The one that this controller has; empty where it does not know."""
        return self._own.read_text(encoding="utf-8").strip() if self._own.is_file() else ""

    def have(self, own: str) -> None:
        """Says that this controller has that one."""
        if own == self.own():
            return
        if own:
            self._own.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._own, f"{own}\n".encode(), 0o644)
        else:
            self._own.unlink(missing_ok=True)

    def is_settled(self) -> bool:
        """Whether none but the last one may lead, or that is not this controller's to say."""
        allowed = self.allowed()
        return len(allowed) <= 1 or allowed[0] != self.own()

    def settle(self) -> None:
        """Has none lead that has another one than the last."""
        self.allow(self.allowed()[:1])


class Identity:
    """By what a controller that takes a configuration names it.

    Whoever takes it first names it, and lets those lead, too, that have not taken it yet. What stands by
    takes that name along, once its files are there. One controller alone needs none, unless others left.
    """

    def __init__(
        self, last: LastDeployed, files: Mapping[str, str], *, is_one_of_several: bool, standing: Standing
    ) -> None:
        self._last = last
        self._before, self._allowed = last.own(), last.allowed()
        self._is_known = is_one_of_several or bool(self._allowed)
        self._has_no_say = standing.waits or not self._is_known
        if self._has_no_say:
            self._wanted = self._before
        elif standing.stands_by and self._allowed:
            self._wanted = self._allowed[0]
        else:
            self._wanted = id_of(files)

    @property
    def differs(self) -> bool:
        """Whether this controller does not know that it has it, or the state that one may lead with it."""
        return not self._has_no_say and (self._before, self._allowed[:1]) != (self._wanted, [self._wanted])

    def allow(self) -> None:
        """Has a slurmctld lead with it: before it starts with it."""
        if self._is_known:
            self._last.allow([self._wanted, *(each for each in self._allowed if each != self._wanted)])

    def have(self) -> None:
        """Says that its files are there."""
        self._last.have(self._wanted)

    def give_back(self) -> None:
        """Says that those of before are there again."""
        self._last.have(self._before)
        # Else both may lead, until the next run.
        with contextlib.suppress(OSError, KeyError):
            self._last.allow(self._allowed)

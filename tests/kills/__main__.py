"""`make kills`: deploy itself is killed at random moments, and the next run has to make all of it good."""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Any

from tests.campaign import Campaign, Program, chance_of, fought, options_of, standing_or
from tests.command_line import positive, say
from tests.kills.figures import KILLS_HEAD, Found, kills_table
from tests.kills.lab import new_lab
from tests.kills.rounds import FIRST, KINDS, Ground, Round, measured, shares

_KILLS = 10
_A_FIRST_DEPLOYMENT = 200.0
"""Seconds, until it is known."""


def _is_bad(found: Mapping[str, Any]) -> bool:
    return bool(found["troubles"])


_PROGRAM = Program(
    "kills", KINDS, "two controllers, a host of the database, a node", KILLS_HEAD, kills_table, _is_bad
)


def main() -> int:
    """Exit code 0 where every next run made all of it good."""
    options = _options()
    kinds = shares(options.kills, {kind: KINDS[kind] for kind in options.only or KINDS})
    say(f"seed {options.seed}; {', '.join(kinds)}")
    return fought(_PROGRAM, options, lambda campaign: _Rounds(campaign, options.lab, kinds).fight())


class _Rounds:
    def __init__(self, campaign: Campaign, lab: str | None, kinds: list[str]) -> None:
        self.campaign, self.lab, self.kinds = campaign, lab, kinds
        self._took = {FIRST: _A_FIRST_DEPLOYMENT}
        self._numbers, self._lab_numbers = count(2), count()  # the first change is measured

    def fight(self) -> None:
        """First deployments on machines of their own each, of which the last ones serve all others."""
        others = [kind for kind in self.kinds if kind != FIRST]
        firsts = len(self.kinds) - len(others)
        while firsts or others:
            with self._ground(self.campaign.place / str(next(self._lab_numbers))) as ground:
                if firsts and self._round(ground, FIRST):
                    firsts -= 1
                if not firsts and others:
                    self._others(ground, others)
                    others = []

    def _others(self, ground: Ground, kinds: list[str]) -> None:
        done = ground.typed(*ground.words(FIRST))
        if done.returncode:
            message = f"the lab does not converge: {done.stdout[-3000:]}{done.stderr[-3000:]}"
            raise RuntimeError(message)
        ground.took |= dict(measured(ground))
        ground.long_job()
        for kind in kinds:
            while not self._round(ground, kind):
                pass
        ground.cluster.as_user("touch stop")

    def _round(self, ground: Ground, kind: str) -> bool:
        """Whether the run was killed: it may end before, which counts for none."""
        number = next(self._numbers)
        found = Round(ground, kind, number, chance_of(self.campaign.seed, number)).play()
        self._took |= ground.took
        say(f"{kind}: {_said(found)}")
        for trouble in found.troubles:
            say(f"  {trouble}")
        self.campaign.keep(kind, asdict(found))
        return found.is_killed

    @contextmanager
    def _ground(self, place: Path) -> Iterator[Ground]:
        place.mkdir()
        name = self.lab or f"test-kills-{os.getpid()}"
        try:
            with standing_or(self.lab, lambda: new_lab(name, place / "site")) as cluster:
                yield Ground(cluster, place, say, dict(self._took))
        finally:
            rmtree(Path("/dev/shm") / name, ignore_errors=True)


def _said(found: Found) -> str:
    how = "with all of its processes" if found.all_of_them else "alone"
    what = f"killed {how} after {found.moment} s" if found.is_killed else "it ended before it could be killed"
    return f"{what}; typed again it took {found.well} s; {len(found.troubles)} troubles"


def _options() -> argparse.Namespace:
    parser = options_of(_PROGRAM)
    parser.add_argument("--kills", type=positive, default=_KILLS, help=f"how many in all ({_KILLS})")
    options = parser.parse_args()
    if options.lab:  # the first deployment there was
        options.only = options.only or [kind for kind in KINDS if kind != FIRST]
    return options


if __name__ == "__main__":
    sys.exit(main())

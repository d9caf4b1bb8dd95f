"""`make kills`: deploy itself is killed at random moments, and the next run has to make all of it good."""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from typing import Any

from deploy.lab.state import need_lab
from tests.bench import machine
from tests.cluster.lab_cluster import Cluster
from tests.command_line import positive, say
from tests.kills.figures import KILLS_HEAD, Found, kills_table
from tests.kills.lab import new_lab
from tests.kills.rounds import FIRST, KINDS, Ground, Round, chance_of, measured, shares

_INTERRUPTED = 130
_KILLS = 10
_A_FIRST_DEPLOYMENT = 200.0
"""Seconds, until it is known."""


def main() -> int:
    """Exit code 0 where every next run made all of it good."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up like Ctrl-C
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    kinds = shares(options.kills, {kind: KINDS[kind] for kind in options.only or KINDS})
    say(f"seed {seed}; {', '.join(kinds)}")
    campaign = _Campaign(options, seed, kinds)
    try:
        with tempfile.TemporaryDirectory(prefix="kills-") as place:
            campaign.fight(Path(place))
    except KeyboardInterrupt:
        say("kills: interrupted; its machines are gone")
        return _INTERRUPTED
    for line in (KILLS_HEAD, *kills_table(campaign.parts)):
        sys.stdout.write(" | ".join(line) + "\n")
    return int(any(one["troubles"] for part in campaign.parts.values() for one in part["rounds"]))


class _Campaign:
    """All rounds; what is known is kept after each, should a later one not end."""

    def __init__(self, options: argparse.Namespace, seed: int, kinds: list[str]) -> None:
        self.options, self.seed, self.kinds = options, seed, kinds
        self.parts: dict[str, Any] = {}
        self._took = {FIRST: _A_FIRST_DEPLOYMENT}
        self._description = {
            "measured": datetime.now(UTC).isoformat(timespec="seconds"),
            **machine.describe(),
            "labs": f"two controllers, a host of the database, a node; seed {seed}",
        }

    def fight(self, place: Path) -> None:
        """First deployments on machines of their own each, of which the last ones serve all others."""
        others = [kind for kind in self.kinds if kind != FIRST]
        firsts = len(self.kinds) - len(others)
        for number in range(max(firsts, 1)):
            with self._ground(place / str(number)) as ground:
                if number < firsts:
                    self._round(ground, FIRST, number)
                if number + 1 < firsts or not others:
                    continue
                self._others(ground, others, firsts)

    def _others(self, ground: Ground, kinds: list[str], number: int) -> None:
        done = ground.typed(*ground.words(FIRST))
        if done.returncode:
            message = f"the lab does not converge: {done.stdout[-3000:]}{done.stderr[-3000:]}"
            raise RuntimeError(message)
        ground.took |= dict(measured(ground))
        ground.long_job()
        for place, kind in enumerate(kinds):
            self._round(ground, kind, number + place + 2)
        ground.cluster.as_user("touch stop")

    def _round(self, ground: Ground, kind: str, number: int) -> None:
        found = Round(ground, kind, number, chance_of(self.seed, number)).play()
        self._took |= ground.took
        say(f"{kind}: {_said(found)}")
        for trouble in found.troubles:
            say(f"  {trouble}")
        part = self.parts.setdefault(kind, {"what": KINDS[kind], **self._description, "rounds": []})
        part["rounds"].append(asdict(found))
        if self.options.json:
            _update(self.options.json, kind, part)

    @contextmanager
    def _ground(self, place: Path) -> Iterator[Ground]:
        place.mkdir()
        name = self.options.lab or f"test-kills-{os.getpid()}"
        memory = Path("/dev/shm") / name
        try:
            if self.options.lab:
                yield Ground(Cluster(name, need_lab(name).directory, "trixie"), place, say, dict(self._took))
                return
            with new_lab(name, place / "site") as cluster:
                yield Ground(cluster, place, say, dict(self._took))
        finally:
            rmtree(memory, ignore_errors=True)


def _said(found: Found) -> str:
    how = "with all of its processes" if found.all_of_them else "alone"
    what = f"killed {how} after {found.moment} s" if found.is_killed else "it ended before it could be killed"
    return f"{what}; typed again it took {found.well} s; {len(found.troubles)} troubles"


def _update(file: Path, kind: str, part: Mapping[str, Any]) -> None:
    """Puts a kind into a file, and leaves the others there."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    all_of_them = {**kept, kind: part}
    ordered = {key: all_of_them[key] for key in KINDS if key in all_of_them}
    file.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--kills", type=positive, default=_KILLS, help=f"how many in all ({_KILLS})")
    parser.add_argument(
        "--only", action="append", choices=[*KINDS], help="this kind of run only; several times for several"
    )
    parser.add_argument("--seed", type=int, help="decides the moments (by chance)")
    lab = "a lab that stands, made as this program makes it; it is left there; first only where it is new"
    parser.add_argument("--lab", metavar="NAME", help=lab)
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here, too, by kind")
    options = parser.parse_args()
    if options.lab:
        options.only = options.only or [kind for kind in KINDS if kind != FIRST]
    return options


if __name__ == "__main__":
    sys.exit(main())

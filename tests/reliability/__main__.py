"""`make reliability`: faults of controllers, database, network and storage under load, and what they cost."""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from tests.campaign import Campaign, Program, chance_of, fought, options_of, standing_or
from tests.cluster.lab_cluster import Cluster
from tests.command_line import positive, say
from tests.reliability.faults import FAULTS, SHORT, turns
from tests.reliability.figures import HEAD, lost_though_saved, table
from tests.reliability.lab import deployed_lab
from tests.reliability.load import prepare
from tests.reliability.rounds import RUNNING, UNTIL_TOLD, Round

_TIMES = 5
_CODE = (
    *(f"roles/{name}" for name in ("mariadb", "munge", "slurm_auth", "slurm_client", "slurm_packages")),
    *(f"roles/{name}" for name in ("slurmctld", "slurmd", "slurmdbd")),
    *(f"tests/reliability/{name}.py" for name in ("faults", "lab", "load", "rounds", "usage", "writers")),
)


def main() -> int:
    """Exit code 0 when nothing that was saved is lost, nothing ran twice and nothing was done by hand."""
    options = _options()
    options.only = options.only or ([*SHORT] if options.short else [*FAULTS])
    say(f"seed {options.seed}; faults: {', '.join(options.only)}; each {options.times} times")

    def fight(campaign: Campaign) -> None:
        name = f"test-reliability-{os.getpid()}"
        with standing_or(options.lab, lambda: deployed_lab(name, campaign.place)) as cluster:
            _Rounds(cluster, campaign).fight(options)

    return fought(_PROGRAM, options, fight)


class _Rounds:
    def __init__(self, cluster: Cluster, campaign: Campaign) -> None:
        self.cluster, self.campaign = cluster, campaign
        self._waiting: list[Round] = []

    def fight(self, options: argparse.Namespace) -> None:
        """One fault after the other; each counts as soon as its last job has ended."""
        until = time.monotonic() + 60 * (options.minutes or math.inf)
        seed = self.campaign.seed
        rounds = [
            Round(self.cluster, key, chance_of(seed, key, number), number, say)
            for number, key in turns(seed, options.only, options.times)
        ]
        prepare(self.cluster, [one.load for one in rounds])
        try:
            for one in rounds:
                if time.monotonic() > until:
                    say(f"{options.minutes} minutes are over: no more rounds")
                    break
                say(f"{one.key}, {one.number + 1} of {options.times}")
                one.disturb()
                self._waiting.append(one)
                self._count_those_told()
                if options.apart:
                    self._count_all()
            self._count_all()
        except Exception:
            self._count_all()
            raise
        except KeyboardInterrupt:
            self._count_those_told()
            if self._waiting:
                keys = ", ".join(one.key for one in self._waiting)
                say(f"not counted, as jobs of theirs have not ended: {keys}")
            raise

    def _count_those_told(self) -> None:
        for one in [one for one in self._waiting if one.is_told()]:
            self._count(one, 0)

    def _count_all(self) -> None:
        until = time.monotonic() + UNTIL_TOLD
        self._count_those_told()
        for one in [*self._waiting]:
            self._count(one, max(0.0, until - time.monotonic()))

    def _count(self, one: Round, seconds: float) -> None:
        figures = one.count(seconds)
        self._waiting.remove(one)
        say(f"  {one.key}: {json.dumps(figures)}")
        self.campaign.keep(one.key, figures)


def _is_bad(found: Mapping[str, Any]) -> bool:
    return bool(lost_though_saved(found) or found["twice"] or found["at_once"] or found["by_hand"])


_PROGRAM = Program(
    "reliability",
    {key: fault.what for key, fault in FAULTS.items()},
    f"two controllers, two hosts of the database and an arbitrator, three nodes; {RUNNING} jobs that run,"
    " a submission and a question a second",
    HEAD,
    table,
    _is_bad,
    _CODE,
)


def _options() -> argparse.Namespace:
    parser = options_of(_PROGRAM)
    parser.add_argument("--times", type=positive, help="rounds of each fault (5; with --short 1)")
    parser.add_argument("--short", action="store_true", help="the faults that tell most, and no others")
    apart = "wait for the last jobs of each fault before the next one, which takes minutes each"
    parser.add_argument("--apart", action="store_true", help=apart)
    minutes = "begin no more rounds after so many minutes; what was begun is counted"
    parser.add_argument("--minutes", type=positive, help=minutes)
    options = parser.parse_args()
    options.times = options.times or (1 if options.short else _TIMES)
    return options


if __name__ == "__main__":
    sys.exit(main())

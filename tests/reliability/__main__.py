"""`make reliability`: faults of controllers, database, network and storage under load, and what they cost."""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from tests.campaign import Campaign, Program, chance_of, fought, options_of, standing_or
from tests.cluster.lab_cluster import Cluster
from tests.command_line import positive, say
from tests.reliability.faults import FAULTS, SHORT
from tests.reliability.figures import HEAD, lost_though_saved, table
from tests.reliability.lab import deployed_lab
from tests.reliability.rounds import RUNNING, Round

_TIMES = 5


def main() -> int:
    """Exit code 0 when nothing that was saved is lost, nothing ran twice and nothing was done by hand."""
    options = _options()
    options.only = options.only or ([*SHORT] if options.short else [*FAULTS])
    say(f"seed {options.seed}; faults: {', '.join(options.only)}; each {options.times} times")

    def fight(campaign: Campaign) -> None:
        name = f"test-reliability-{os.getpid()}"
        with standing_or(options.lab, lambda: deployed_lab(name, campaign.place)) as cluster:
            _all(cluster, campaign, options)

    return fought(_PROGRAM, options, fight)


def _all(cluster: Cluster, campaign: Campaign, options: argparse.Namespace) -> None:
    later: list[Round] = []

    def counted(one: Round) -> None:
        figures = one.count()
        say(f"  {json.dumps(figures)}")
        campaign.keep(one.key, figures)

    try:
        for key, number in ((key, number) for key in options.only for number in range(options.times)):
            say(f"{key}, {number + 1} of {options.times}")
            one = Round(cluster, key, chance_of(campaign.seed, key, number), number, say)
            one.disturb()
            if options.together:
                later.append(one)
            else:
                counted(one)
    finally:
        for one in later:
            counted(one)


def _is_bad(found: Mapping[str, Any]) -> bool:
    return bool(lost_though_saved(found) or found["twice"] or found["at_once"] or found["by_hand"])


_PROGRAM = Program(
    "reliability",
    {key: fault.what for key, fault in FAULTS.items()},
    f"two controllers, a host of the database, two nodes; {RUNNING} jobs that run, a submission"
    " and a question a second",
    HEAD,
    table,
    _is_bad,
)


def _options() -> argparse.Namespace:
    parser = options_of(_PROGRAM)
    parser.add_argument("--times", type=positive, help="rounds of each fault (5; with --short 1)")
    parser.add_argument("--short", action="store_true", help="the faults that tell most, and no others")
    together = "wait for the last jobs when all faults are over, which saves minutes each"
    parser.add_argument("--together", action="store_true", help=together)
    options = parser.parse_args()
    options.times = options.times or (1 if options.short else _TIMES)
    return options


if __name__ == "__main__":
    sys.exit(main())

"""`make power`: machines with kernels of their own lose their power, and have to be back by themselves."""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.campaign import Campaign, Program, chance_of, fought, options_of, standing_or
from tests.command_line import positive, say
from tests.power.figures import POWER_HEAD, power_table
from tests.power.lab import deployed_lab
from tests.power.rounds import KINDS, Round
from tests.power.watch import Watch

_ROUNDS = 5
_A_DEPLOYMENT = 60.0
"""Seconds, until it is known."""


def _is_bad(found: Mapping[str, Any]) -> bool:
    return bool(found["troubles"] or found["by_hand"])


_PROGRAM = Program(
    "power",
    KINDS,
    "machines with kernels of their own (user-mode Linux): a controller with /home, a login node, two nodes",
    POWER_HEAD,
    power_table,
    _is_bad,
)


def main() -> int:
    """Exit code 0 where all came back without a hand, and no job was lost that could be kept."""
    options = _options()
    return fought(_PROGRAM, options, lambda campaign: _fight(campaign, options))


def _fight(campaign: Campaign, options: argparse.Namespace) -> None:
    name, took = f"test-power-{os.getpid()}", _A_DEPLOYMENT
    with standing_or(options.lab, lambda: deployed_lab(name, campaign.place), "uml") as cluster:
        watch = Watch(cluster, say)
        for number, kind in numbered(campaign.seed, options.only or [*KINDS], options.first, options.rounds):
            once_more = f"--first {number} --rounds 1 --seed {campaign.seed}"
            say(f"round {number}: {kind} (once more: {' '.join([once_more, *_chosen(options)])})")
            one = Round(watch, kind, number, chance_of(campaign.seed, number), say, took)
            figures = one.play()
            took = one.took
            for trouble in figures["troubles"]:
                say(f"  TROUBLE: {trouble}")
            say(f"  {figures['lasted']} s, {len(figures['troubles'])} troubles, jobs: {figures['jobs']}")
            campaign.keep(kind, {"seed": campaign.seed, **figures})
            if one.is_beyond_help:
                say("the lab is not well by hand, either: no further round")
                return


def _chosen(options: argparse.Namespace) -> list[str]:
    return [word for kind in options.only or () for word in ("--only", kind)]


def numbered(seed: int, kinds: Sequence[str], first: int, rounds: int) -> Iterator[tuple[int, str]]:
    """So many rounds by number, with their kinds: all in a random order, then again in another one."""
    for number in range(first, first + rounds):
        turn, place = divmod(number - 1, len(kinds))
        yield number, chance_of(seed, "kinds", turn).sample(list(kinds), len(kinds))[place]


def _options() -> argparse.Namespace:
    parser = options_of(_PROGRAM)
    parser.add_argument("--rounds", type=positive, default=_ROUNDS, help=f"how many in all ({_ROUNDS})")
    first = "the number of the first round, to have one of a campaign again by its seed (1)"
    parser.add_argument("--first", type=positive, default=1, help=first)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

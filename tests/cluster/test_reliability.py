"""The faults that tell most, once each, under load: nothing that was saved is lost, and all comes back.

Times are no part of it: `make reliability` measures them, and docs/reliability.md has them.
"""

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.campaign import chance_of
from tests.cluster.lab_cluster import Cluster
from tests.command_line import say
from tests.reliability.faults import LEAD_COMES_BACK, SHORT
from tests.reliability.figures import lost_though_saved
from tests.reliability.lab import deployed_lab
from tests.reliability.load import prepare
from tests.reliability.rounds import Round

pytestmark = [pytest.mark.one_release, pytest.mark.more]


@pytest.fixture(scope="module")
def reliable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two controllers, two hosts of the database and an arbitrator, and three nodes."""
    with deployed_lab(f"test-reliability-{os.getpid()}", tmp_path_factory.mktemp("reliability")) as made:
        yield made


@pytest.fixture(scope="module")
def rounds(reliable: Cluster) -> dict[str, dict[str, Any]]:
    """What came of each fault, counted when all are over."""
    seed = random.SystemRandom().randrange(10**6)
    say(f"once more: python -m tests.reliability --short --seed {seed}")
    played = [Round(reliable, key, chance_of(seed, key, 0), 0, say) for key in SHORT]
    prepare(reliable, [one.load for one in played])
    for one in played:
        one.disturb()
    return {one.key: one.count() for one in played}


@pytest.mark.parametrize("fault", SHORT)
def test_a_fault_costs_time_and_nothing_that_was_saved(rounds: dict[str, dict[str, Any]], fault: str) -> None:
    came = rounds[fault]
    say(str(came))
    assert not lost_though_saved(came)
    assert not came["at_once"] or fault in LEAD_COMES_BACK
    assert came["by_hand"] == []

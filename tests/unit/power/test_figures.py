"""What became of jobs is told apart: kept, started again, ended with their node, lost."""

from typing import Any

import pytest

from tests.power.__main__ import numbered
from tests.power.figures import (
    AGAIN,
    JUST_KEPT,
    JUST_LOST,
    KEPT,
    LOST,
    POWER_HEAD,
    WITH_NODE,
    Job,
    counted,
    fates,
    power_table,
)
from tests.power.rounds import KINDS

_ON, _OFF = Job("a", node_lost=False), Job("a", node_lost=True)
_ONCE = Job("a", node_lost=True, requeues=False)
_NEW = Job("a", node_lost=True, is_settled=False)


@pytest.mark.parametrize(
    ("job", "states", "begun", "ended", "came"),
    [
        (_ON, ["COMPLETED"], 1, 1, KEPT),
        (_ON, ["NODE_FAIL", "COMPLETED"], 2, 1, LOST),
        (_ON, ["COMPLETED"], 2, 1, LOST),
        (_ON, [], 1, 1, LOST),
        (_ON, ["RUNNING"], 1, 1, LOST),
        (_ON, ["CANCELLED by 0"], 1, 0, LOST),
        (_OFF, ["COMPLETED"], 1, 1, KEPT),
        (_OFF, ["NODE_FAIL", "COMPLETED"], 2, 1, AGAIN),
        (_OFF, ["REQUEUED", "COMPLETED"], 2, 1, AGAIN),
        (_OFF, ["CANCELLED by 0", "COMPLETED"], 2, 1, LOST),
        (_OFF, ["NODE_FAIL", "COMPLETED"], 2, 2, LOST),
        (_OFF, ["NODE_FAIL"], 1, 0, LOST),
        (_OFF, ["COMPLETED"], 1, 0, LOST),
        (_ONCE, ["NODE_FAIL"], 1, 0, WITH_NODE),
        (_ONCE, ["RUNNING"], 1, 0, LOST),
        (_ONCE, ["NODE_FAIL", "COMPLETED"], 2, 1, LOST),
        (_NEW, ["COMPLETED"], 1, 1, JUST_KEPT),
        (_NEW, [], 0, 0, JUST_LOST),
    ],
)
def test_what_became_of_a_job(job: Job, states: list[str], begun: int, ended: int, came: str) -> None:
    rows = [("another", "RUNNING"), *((job.name, state) for state in states)]
    (fate,) = fates([job], rows, [job.name] * begun, [job.name] * ended)
    assert fate.came == came
    assert bool(fate.trouble) == (came == LOST)


def test_a_kind_is_one_row() -> None:
    jobs = [Job("a", node_lost=True), Job("b", node_lost=False), _NEW]
    jobs_came = counted(fates(jobs, [("b", "COMPLETED")], ["b"], ["b"]))
    one: dict[str, Any] = {"well": 50.0, "jobs": jobs_came, "changes": 0, "by_hand": [], "troubles": []}
    bad = {**one, "well": 70.0, "changes": 3, "by_hand": ["deploy cluster"], "troubles": ["a", "b"]}
    broken_off = {**one, "well": None, "jobs": counted([]), "troubles": ["c"]}
    (row,) = power_table({"all": {"what": "all machines", "rounds": [one, bad, broken_off]}})
    assert dict(zip(POWER_HEAD, row, strict=True)) == {
        "without power": "all machines",
        "rounds": "3",
        "s until all was well": "60 (50 to 70)",
        "jobs": "4",
        "went on or ended": "2",
        "started again": "0",
        "ended with their node, as asked": "0",
        "lost": "2",
        "just taken: kept, of": "0, 2",
        "changes of the next run": "3",
        "by hand": "deploy cluster",
        "with trouble": "2",
    }
    assert next(power_table({"all": {"what": "all machines", "rounds": [broken_off]}}))[2] == "never"


def test_each_turn_has_every_kind_and_a_round_is_the_same_when_it_is_had_again() -> None:
    rounds = dict(numbered(7, [*KINDS], 1, 20))
    for turn in range(4):
        assert {rounds[number] for number in range(5 * turn + 1, 5 * turn + 6)} == {*KINDS}
    assert list(numbered(7, [*KINDS], 13, 1)) == [(13, rounds[13])]
    assert rounds != dict(numbered(8, [*KINDS], 1, 20))

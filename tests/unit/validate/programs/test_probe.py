"""The piece of work by which nodes are compared, on processors that others use too."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.validate.programs import user


class Clock:
    """The time of a process that now and then waits for the processor: so long a round takes, by round."""

    def __init__(self, rounds: Iterator[float], work: float) -> None:
        self._rounds, self._work = rounds, work
        self.now = self.used = 0.0
        self.count = 0

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return self.used

    def range(self, _: int) -> Iterator[int]:
        """A round of work."""
        self.now += next(self._rounds)
        self.used += self._work
        self.count += 1
        return iter(())


def always(seconds: float) -> Iterator[float]:
    while True:
        yield seconds


def then(*first: float, after: float) -> Iterator[float]:
    yield from first
    yield from always(after)


@pytest.mark.parametrize(
    ("rounds", "work", "best", "count"),
    [
        (always(0.1), 0.1, 0.1, 3),
        (always(0.5), 0.5, 0.5, 3),
        (then(0.3, 0.1, after=0.3), 0.1, 0.1, 3),
        (then(0.3, 0.3, 0.3, 0.3, after=0.1), 0.1, 0.1, 5),
        (always(0.5), 0.1, 0.5, 17),
    ],
    ids=["alone", "slow", "disturbed once", "disturbed for a while", "disturbed for good"],
)
def test_who_shares_a_processor_is_given_time(
    rounds: Iterator[float], work: float, best: float, count: int
) -> None:
    text = Path(user.__file__).with_name("probe.py").read_text(encoding="utf-8")
    program: dict[str, Any] = {"__name__": "probe"}
    exec(text.removesuffix("main()\n"), program)  # noqa: S102 - deploy's own
    clock = Clock(rounds, work)
    program |= {"time": clock, "range": clock.range}
    assert program["seconds_of_work"]() == pytest.approx(best)
    assert clock.count == count

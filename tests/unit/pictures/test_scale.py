"""Axes of graphs."""

import math

import pytest

from deploy.monitoring.panel import Panel
from tests.pictures.scale import limits, ticks

GIB = 1 << 30


@pytest.mark.parametrize(
    ("low", "high", "unit", "expected"),
    [
        (0, 1, "percentunit", [0, 0.5, 1]),
        (0, 10.8, "short", [0, 5, 10]),
        (0, 7 * GIB, "bytes", [0, 2 * GIB, 4 * GIB, 6 * GIB]),
        (0, 400, "s", [0, 120, 240, 360]),
        (-3, 3, "celsius", [-2, 0, 2]),
        (0, 0.05, "s", [0, 0.02, 0.04]),
    ],
)
def test_lines_are_at_round_values(low: float, high: float, unit: str, expected: list[float]) -> None:
    assert ticks(low, high, unit) == pytest.approx(expected)


def test_limits_are_the_panels_own() -> None:
    assert limits(Panel("", "short", (), maximum=1), [0.2, math.nan]) == (0, 1)
    assert limits(Panel("", "short", ()), [50, 100]) == (0, 108)
    assert limits(Panel("", "short", (), minimum=None), [-50, 50]) == (-58, 58)


def test_there_is_always_something_between_the_limits() -> None:
    for values in ([], [0.0], [math.nan], [-1.0]):
        for minimum in (0, None):
            low, high = limits(Panel("", "short", (), minimum=minimum), values)
            assert low < high

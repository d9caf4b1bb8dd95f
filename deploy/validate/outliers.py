"""Which of many that should be equal are not: by the median, and the median of the distances from it."""

from collections.abc import Mapping
from statistics import median

_FEWEST = 5
"""Of fewer nobody can tell which is the odd one."""
_NORMAL = 1.4826
"""The median distance of normally distributed values times this is their standard deviation."""
_PERCENT = 100


def spread_limit(values: Mapping[str, float], deviations: float, percent: float) -> float | None:
    """How far from the median a value may be; None when there are too few to tell.

    At least ``percent`` of the median: machines that are all but equal differ by their noise.
    """
    if len(values) < _FEWEST:
        return None
    middle = median(values.values())
    distance = median(abs(value - middle) for value in values.values())
    return float(max(deviations * _NORMAL * distance, abs(middle) * percent / _PERCENT))


def lowest_usual(values: Mapping[str, float], deviations: float, percent: float) -> float | None:
    """What is below is an outlier; None when there are too few to tell."""
    limit = spread_limit(values, deviations, percent)
    return None if limit is None else float(median(values.values())) - limit

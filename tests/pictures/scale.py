"""Where a graph's axis has its lines."""

import math
from collections.abc import Iterable

from deploy.monitoring.panel import Panel

_STEPS = (1.0, 2.0, 5.0, 10.0)
_TIMES = (1.0, 60.0, 3600.0, 86400.0, 604800.0)


def limits(panel: Panel, values: Iterable[float]) -> tuple[float, float]:
    """The lowest and the highest value that is shown: the panel's own, else with some room above."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low = min(finite) if panel.minimum is None else panel.minimum
    high = panel.maximum or max(finite)
    if high <= low:
        return (low, low + 1) if low >= 0 else (low * 1.1, 0.0)
    room = 0 if panel.maximum else (high - low) * 0.08
    return low - (room if panel.minimum is None else 0), high + room


def ticks(low: float, high: float, unit: str, wished: int = 4) -> list[float]:
    """Round values of the unit between the two."""
    one = _one_of(max(abs(low), abs(high)), unit)
    rough = (high - low) / one / wished
    power: float = 10.0 ** math.floor(math.log10(rough))
    step = one * power * next(each for each in _STEPS if each * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def _one_of(size: float, unit: str) -> float:
    """What counts as one: a mebibyte, an hour."""
    if unit == "bytes" and size >= 1:
        return float(1024 ** int(math.log2(size) / 10))
    if unit == "s":
        return max((one for one in _TIMES if one <= size), default=1.0)
    return 1.0

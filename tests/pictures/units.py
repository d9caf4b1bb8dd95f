"""Numbers as Grafana writes them, for the units that the dashboards have."""

import math
from collections.abc import Callable, Sequence

_COUNTED = ("", " K", " Mil", " Bil", " Tri")
_BINARY = (" B", " KiB", " MiB", " GiB", " TiB", " PiB")
_SMALL, _LARGE = ("", "m", "µ", "n"), ("", "k", "M", "G", "T", "P")
_WITH_PREFIX = {"Bps": "B/s", "pps": "p/s", "watt": "W", "hertz": "Hz"}
_PER_SECOND = {"iops": "io/s", "reqps": "req/s"}
_TIMES = (
    (1e-6, 1e9, "ns"),
    (1e-3, 1e6, "µs"),
    (1.0, 1e3, "ms"),
    (60.0, 1.0, "s"),
    (3600.0, 1 / 60, "min"),
    (86400.0, 1 / 3600, "hour"),
    (604800.0, 1 / 86400, "day"),
    (31536000.0, 1 / 604800, "week"),
    (math.inf, 1 / 31536000, "year"),
)


def written(value: float, unit: str) -> str:
    """A value with its unit."""
    if not math.isfinite(value):
        return "No data" if math.isnan(value) else "∞"
    simple: dict[str, Callable[[], str]] = {
        "none": lambda: _digits(value),
        "short": lambda: _scaled(value, 1000, _COUNTED),
        "bytes": lambda: _scaled(value, 1024, _BINARY),
        "percentunit": lambda: f"{_digits(value * 100)}%",
        "celsius": lambda: f"{_digits(value)} °C",
        "bool_yes_no": lambda: "Yes" if value else "No",
        "s": lambda: _time(value),
    }
    if unit in simple:
        return simple[unit]()
    if unit in _PER_SECOND:
        return f"{_scaled(value, 1000, ('', 'K', 'M', 'B'))} {_PER_SECOND[unit]}"
    return _with_prefix(value, _WITH_PREFIX[unit])


def _with_prefix(value: float, name: str) -> str:
    if 0 < abs(value) < 1:
        place = min(math.ceil(-math.log10(abs(value)) / 3), len(_SMALL) - 1)
        return f"{_digits(value * 1000**place)} {_SMALL[place]}{name}"
    return _scaled(value, 1000, [f" {prefix}{name}" for prefix in _LARGE])


def _scaled(value: float, step: int, names: Sequence[str]) -> str:
    place = 0
    while abs(value) >= step and place < len(names) - 1:
        value /= step
        place += 1
    return f"{_digits(value)}{names[place]}"


def _time(value: float) -> str:
    if value == 0:
        return "0 s"
    factor, name = next((factor, name) for below, factor, name in _TIMES if abs(value) < below)
    number = _digits(value * factor)
    several = "s" if len(name) > len("ms") and number != "1" else ""
    return f"{number} {name}{several}"


def _digits(value: float) -> str:
    """Whole, or with three digits."""
    rounded = round(value, 9)
    if rounded == int(rounded):
        return str(int(rounded))
    return f"{rounded:.{max(0, 2 - math.floor(math.log10(abs(rounded))))}f}"

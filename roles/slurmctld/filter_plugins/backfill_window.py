"""Filter: how far the backfill scheduler has to look ahead for the time limits of a site's partitions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

_DAY = 1440
_WEEK = 7 * _DAY
_MOST = 30 * _DAY  # slurm.conf(5)


def backfill_window(partitions: Iterable[Mapping[str, Any]]) -> int:
    """Minutes from a day to thirty, the longest time limit among them; none counts as a week."""
    longest = max((_minutes(str(partition.get("max_time", ""))) for partition in partitions), default=_WEEK)
    return min(max(longest, _DAY), _MOST)


def _minutes(limit: str) -> int:
    """As slurm.conf(5) writes time limits, rounded up."""
    days, dash, rest = limit.rpartition("-")
    if not all(part.isdigit() for part in [*rest.split(":"), days or "0"]):
        return _WEEK
    parts = [int(part) for part in rest.split(":")]
    # Behind days come hours; else one number or two begin with minutes.
    units = (3600, 60, 1) if dash or len(parts) == 3 else (60, 1)  # noqa: PLR2004
    seconds = sum(part * unit for part, unit in zip(parts, units))  # noqa: B905 - Python 3.9
    return int(days or 0) * _DAY + -(-seconds // 60)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filter by name."""
        return {"backfill_window": backfill_window}

"""How seconds of several rounds stand in a table; docs/generators loads this, so it needs nothing else."""

import statistics
from collections.abc import Iterable


def span(values: Iterable[float]) -> str:
    """The median, and from where to where they go."""
    found = list(values)
    middle = f"{statistics.median(found):.0f}"
    return middle if len(found) == 1 else f"{middle} ({min(found):.0f} to {max(found):.0f})"

"""Metrics of the kinds that the parsers make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from prometheus_client import Metric
from prometheus_client.core import HistogramMetricFamily

Labels = tuple[str, ...]
Values = Mapping[Labels, float]
"""The values of a metric by the values of its labels."""


def gauge(name: str, meaning: str, labels: Sequence[str], values: Values) -> Metric:
    """What goes up and down."""
    metric = Metric(name, meaning, "gauge")
    for key, value in values.items():
        metric.add_sample(name, dict(zip(labels, key)), value)  # noqa: B905 - strict= came with Python 3.10
    return metric


def counter(name: str, meaning: str, labels: Sequence[str], values: Values) -> Metric:
    """What goes up until it starts anew; ``name`` ends with ``_total``."""
    metric = Metric(name.removesuffix("_total"), meaning, "counter")
    for key, value in values.items():
        metric.add_sample(name, dict(zip(labels, key)), value)  # noqa: B905
    return metric


class Histogram:
    """How many of each kind took how long: buckets in seconds, by one label."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def know(self, label: str) -> None:
        """Begins at nothing, so that the first one counted is an increase."""
        if label not in self._counts:
            self._counts[label] = [0] * (len(self._bounds) + 1)
            self._sums[label] = 0.0

    def add(self, label: str, seconds: float) -> None:
        """Counts one."""
        self.know(label)
        place = next((n for n, bound in enumerate(self._bounds) if seconds <= bound), len(self._bounds))
        self._counts[label][place] += 1
        self._sums[label] += seconds

    def family(self, name: str, meaning: str, label: str) -> Metric:
        """Everything counted so far."""
        family = HistogramMetricFamily(name, meaning, labels=[label])
        for value, counts in self._counts.items():
            buckets, total = [], 0
            for bound, count in zip([*map(str, self._bounds), "+Inf"], counts):  # noqa: B905
                total += count
                buckets.append((bound, total))
            family.add_metric([value], buckets, self._sums[value])
        return family

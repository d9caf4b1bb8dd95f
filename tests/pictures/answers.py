"""What a panel's queries are answered, as its lines, values or rows."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deploy.monitoring.panel import Panel, Query
from tests.cluster.dashboard_queries import data

_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Line:
    """A named series; where it has no number, NaN."""

    name: str
    values: Sequence[float]

    @property
    def last(self) -> float:
        """Its last number, as Grafana's ``lastNotNull``."""
        return next((value for value in reversed(self.values) if not math.isnan(value)), math.nan)


@dataclass(frozen=True)
class Span:
    """The time that is shown."""

    start: float
    end: float
    step: float

    @property
    def times(self) -> list[float]:
        """Every moment that has a number."""
        return [self.start + self.step * place for place in range(self._length)]

    @property
    def _length(self) -> int:
        return int((self.end - self.start) / self.step) + 1

    def values(self, told: Sequence[tuple[float, str]]) -> list[float]:
        """What Prometheus told, at these moments."""
        values = [math.nan] * self._length
        for moment, text in told:
            values[round((moment - self.start) / self.step)] = float(text)
        return values


@dataclass(frozen=True)
class Source:
    """A Prometheus, and how a query of the dashboard is asked there."""

    url: str
    span: Span
    as_asked: Callable[[str], str]

    def lines(self, panel: Panel) -> list[Line]:
        """What is drawn over time."""
        return [
            Line(named(query, one["metric"]), self.span.values(one["values"]))
            for query in panel.queries
            for one in self._over_time(query)
        ]

    def values(self, panel: Panel) -> list[Line]:
        """What holds at the end."""
        return [
            Line(named(query, one["metric"]), [float(one["value"][1])])
            for query in panel.queries
            for one in self._at_end(query)
        ]

    def rows(self, panel: Panel) -> list[dict[str, str | float]]:
        """A table's rows by columns' titles."""
        return merged([self._at_end(query) for query in panel.queries], panel.columns)

    def _over_time(self, query: Query) -> list[Any]:
        span = self.span
        expr = self.as_asked(query.expr)
        answer = data(self.url, "query_range", query=expr, start=span.start, end=span.end, step=span.step)
        return list(answer["result"])

    def _at_end(self, query: Query) -> list[Any]:
        answer = data(self.url, "query", query=self.as_asked(query.expr), time=self.span.end)
        return list(answer["result"])


def named(query: Query, labels: Labels) -> str:
    """What a series is called in the legend."""
    if query.legend:
        return _LABEL.sub(lambda found: labels.get(found[1], ""), query.legend)
    return ", ".join(f'{name}="{value}"' for name, value in labels.items() if name != "__name__")


def merged(
    answers: Sequence[Sequence[Any]], columns: Mapping[str, tuple[str, str]]
) -> list[dict[str, str | float]]:
    """One row for all answers with the same labels; a value goes to every row that its labels fit."""
    rows: list[dict[str, str | float]] = []
    fitting: list[dict[str, str | float]]
    for number, answer in enumerate(answers):
        field = f"Value #{chr(ord('A') + number)}" if len(answers) > 1 else "Value"
        for one in answer:
            labels = {name: text for name, text in one["metric"].items() if name != "__name__"}
            fitting = [row for row in rows if _fits(row, labels) and field not in row]
            if not fitting:
                fitting = [{}]
                rows += fitting
            for row in fitting:
                row.update(labels)
                row[field] = float(one["value"][1])
    return [{title: row[name] for name, (title, _) in columns.items() if name in row} for row in rows]


def _fits(row: Mapping[str, str | float], labels: Labels) -> bool:
    shared = row.keys() & labels.keys()
    return bool(shared) and all(row[name] == labels[name] for name in shared)

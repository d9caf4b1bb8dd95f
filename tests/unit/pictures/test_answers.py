"""What Prometheus answers, as lines and rows."""

import math
from typing import Any

import pytest

from deploy.monitoring.panel import Panel, Query
from tests.pictures import answers
from tests.pictures.answers import Source, Span, merged, named

SPAN = Span(start=100, end=160, step=20)
PANEL = Panel("Use", "short", (Query("use", "{{instance}} in {{ zone }}"),))


def answer(value: float, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": [160, str(value)]}


def test_moments_without_a_number_have_none() -> None:
    assert SPAN.times == [100, 120, 140, 160]
    values = SPAN.values([(100, "1"), (140, "2.5")])
    assert values[0::2] == [1, 2.5]
    assert math.isnan(values[1])
    assert math.isnan(values[3])


def test_names_are_those_of_the_legend() -> None:
    assert named(PANEL.queries[0], {"instance": "node1", "zone": "a"}) == "node1 in a"
    assert named(Query("use"), {"__name__": "use", "instance": "node1"}) == 'instance="node1"'


def test_lines_are_asked_for_the_span(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def prometheus(url: str, path: str, **parameters: object) -> Any:  # noqa: ANN401
        asked.update(parameters, url=url, path=path)
        return {"result": [{"metric": {"instance": "node1", "zone": "a"}, "values": [(120, "7")]}]}

    monkeypatch.setattr(answers, "data", prometheus)
    lines = Source("http://ctl1:9090", SPAN, lambda expr: f"{expr}[5m]").lines(PANEL)
    assert [(line.name, line.last) for line in lines] == [("node1 in a", 7)]
    assert asked == {
        "url": "http://ctl1:9090",
        "path": "query_range",
        "query": "use[5m]",
        "start": 100,
        "end": 160,
        "step": 20,
    }


def test_values_with_the_same_labels_are_one_row() -> None:
    columns = {"Value #B": ("CPUs", "short"), "node": ("Node", ""), "state": ("State", "")}
    states = [answer(1, node="node1", state="idle"), answer(1, node="node2", state="down")]
    cpus = [answer(64, node="node2"), answer(32, node="node1"), answer(8, node="node3")]
    assert merged([states, cpus], columns) == [
        {"CPUs": 32, "Node": "node1", "State": "idle"},
        {"CPUs": 64, "Node": "node2", "State": "down"},
        {"CPUs": 8, "Node": "node3"},
    ]


def test_the_value_of_a_single_query_has_no_letter() -> None:
    assert merged([[answer(5, node="node1")]], {"node": ("Node", ""), "Value": ("Since", "s")}) == [
        {"Node": "node1", "Since": 5}
    ]

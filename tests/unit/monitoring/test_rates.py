"""What is differentiated adds up: of a rate, a rate again is nothing."""

import re

import yaml

from deploy.content import roles
from deploy.monitoring.alerts import CHAPTERS
from deploy.monitoring.dashboards import DASHBOARDS
from deploy.monitoring.queries import metrics_in
from deploy.monitoring.recording import GROUPS
from tests.unit.monitoring.exporters import RECORDED

RECORDING = {rule.record: rule.expr for rules in GROUPS.values() for rule in rules}
QUERIES = [
    *RECORDING.values(),
    *(alert.expr for chapter in CHAPTERS for alert in chapter.alerts),
    *(query.expr for dashboard in DASHBOARDS for panel in dashboard.panels for query in panel.queries),
]
DIFFERENTIATED = re.compile(r"\b(?:i?rate|increase)\(([a-zA-Z_:][\w:]*)")


def types() -> dict[str, str]:
    """The type of every metric, by what exporters told."""
    texts = "\n".join(path.read_text(encoding="utf-8") for path in RECORDED.glob("*.prom"))
    return dict(re.findall(r"^# TYPE (\S+) (\w+)$", texts, re.MULTILINE))


def differentiated() -> set[str]:
    """The exporters' metrics of which queries ask a rate, through the recording rules."""
    names = {name for expr in QUERIES for name in DIFFERENTIATED.findall(expr)}
    while recorded := names & RECORDING.keys():
        names = (names - recorded).union(*(metrics_in(RECORDING[name]) for name in recorded))
    return names


def test_no_rate_is_asked_of_a_gauge() -> None:
    found = types()
    assert len(differentiated()) > 10
    assert {name for name in differentiated() if found.get(name) == "gauge"} == set()


def test_the_recording_of_dcgm_has_the_types_that_it_is_asked_for() -> None:
    text = (roles() / "gpu_exporter/vars/main.yml").read_text(encoding="utf-8")
    asked = {field["name"]: field["type"] for field in yaml.safe_load(text)["__gpu_exporter_fields"]}
    told = {name: kind for name, kind in types().items() if name.startswith("DCGM_")}
    assert told == {name: asked[name] for name in told}

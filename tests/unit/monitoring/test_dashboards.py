"""Dashboards: Grafana takes them, they name what exporters tell, and their links lead somewhere."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard as GrafanaDashboard

from deploy.monitoring.dashboards import DASHBOARDS
from deploy.monitoring.grafana import dashboard_json
from deploy.monitoring.panel import Dashboard, Panel
from deploy.monitoring.queries import metrics_in
from deploy.monitoring.recording import GROUPS
from tests.unit.monitoring.exporters import told

# Grafana's names of units (valueFormats of @grafana/data); one of each quantity, so that numbers compare.
UNITS = {
    *("short", "none", "percentunit", "bytes", "s", "Bps", "pps", "iops", "reqps", "watt", "celsius"),
    *("hertz", "bool_yes_no"),
}
# What a metric's name says of its unit.
ENDINGS = {
    "_bytes": {"bytes"},
    ":bytes": {"bytes"},
    ":ratio": {"percentunit", "short"},
    ":watts": {"watt", "percentunit"},
    ":celsius": {"celsius"},
    ":hertz": {"hertz"},
    "_timestamp_seconds": {"s", "short"},
    "_celsius": {"celsius"},
}
PANELS = [(dashboard, panel) for dashboard in DASHBOARDS for panel in dashboard.panels]


def name_of(value: object) -> str:
    return value.uid if isinstance(value, Dashboard) else value.title if isinstance(value, Panel) else ""


@pytest.fixture(scope="module", autouse=True)
def _plugins() -> None:
    register_default_plugins()


def differences(ours: Any, read: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401
    """What Grafana's own model lost or changed; what it adds are defaults."""
    if isinstance(ours, dict) and isinstance(read, dict):
        for key, value in ours.items():
            if key not in read and value not in (None, {}, [], ""):
                yield f"{place}.{key} is not in Grafana's schema"
            elif key in read:
                yield from differences(value, read[key], f"{place}.{key}")
    elif isinstance(ours, list) and isinstance(read, list):
        if len(ours) != len(read):
            yield f"{place} has {len(read)} entries, not {len(ours)}"
        for number, (one, other) in enumerate(zip(ours, read, strict=False)):
            yield from differences(one, other, f"{place}[{number}]")
    elif ours != read:
        yield f"{place} is {read!r}, not {ours!r}"


def as_grafana_reads_it(data: dict[str, Any]) -> Any:  # noqa: ANN401
    return json.loads(JSONEncoder(sort_keys=True).encode(GrafanaDashboard.from_json(data)))


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=name_of)
def test_grafana_knows_every_setting(dashboard: Dashboard) -> None:
    ours = json.loads(json.dumps(dashboard_json(dashboard)))
    assert list(differences(ours, as_grafana_reads_it(ours))) == []


def test_a_setting_that_grafana_does_not_know_is_noticed() -> None:
    ours = json.loads(json.dumps(dashboard_json(DASHBOARDS[0])))
    ours["panels"][1]["fieldConfig"]["defaults"]["colour"] = "red"
    ours["panels"][1]["tooltip"] = "x"
    assert len(list(differences(ours, as_grafana_reads_it(ours)))) == 2


def test_addresses_and_titles_are_unique() -> None:
    for values in ([one.uid for one in DASHBOARDS], [one.title for one in DASHBOARDS]):
        assert len(values) == len(set(values))
    for dashboard in DASHBOARDS:
        titles = [panel.title for panel in dashboard.panels]
        assert len(titles) == len(set(titles)), dashboard.uid
        assert re.fullmatch(r"[a-z-]{8,40}", dashboard.uid)


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=name_of)
def test_panels_do_not_overlap(dashboard: Dashboard) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard_json(dashboard)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=name_of)
def test_queries_name_only_what_is_told(dashboard: Dashboard, panel: Panel) -> None:
    recorded = {rule.record for rules in GROUPS.values() for rule in rules}
    for query in panel.queries:
        names = metrics_in(query.expr)
        assert names
        assert names <= told() | recorded, dashboard.uid


def test_variables_name_only_what_is_told() -> None:
    for dashboard in DASHBOARDS:
        for variable in dashboard.variables:
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable.query)
            assert found
            assert found[1] in told()


@pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=name_of)
def test_variables_are_those_of_the_dashboard(dashboard: Dashboard, panel: Panel) -> None:
    known = {variable.name for variable in dashboard.variables} | {"__rate_interval"}
    several = {variable.name for variable in dashboard.variables if variable.several}
    for query in panel.queries:
        used = set(re.findall(r"\$(\w+)", query.expr)) - {"1"}
        assert used <= known
        # What can be several values is a regular expression.
        for name in used & several:
            assert f'=~"${name}"' in query.expr


@pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=name_of)
def test_links_lead_to_a_dashboard_that_knows_the_variable(dashboard: Dashboard, panel: Panel) -> None:
    if panel.link is None:
        return
    uid, variable = panel.link
    targets = {one.uid: {each.name for each in one.variables} for one in DASHBOARDS}
    assert uid in targets
    if not variable:
        return
    assert variable in targets[uid], dashboard.uid
    label = panel.link_label or variable
    if panel.kind == "table":
        assert label in {title for title, _ in panel.columns.values()}
    else:
        # A line has the labels that its query leaves, and is called by them.
        assert all(f"{{{{{label}}}}}" in query.legend for query in panel.queries)


def test_every_dashboard_but_the_scheduler_leads_on() -> None:
    alone = {one.uid for one in DASHBOARDS if not any(panel.link for panel in one.panels)}
    assert alone <= {"deploy-scheduler", "deploy-gpus"}


@pytest.mark.parametrize(("dashboard", "panel"), PANELS, ids=name_of)
def test_units_are_consistent(dashboard: Dashboard, panel: Panel) -> None:
    units = {panel.unit, *(unit for _, unit in panel.columns.values() if unit)}
    assert units <= UNITS, dashboard.uid
    if panel.kind == "table":
        return
    for query in panel.queries:
        for name in metrics_in(query.expr):
            for ending, allowed in ENDINGS.items():
                if name.endswith(ending) and not re.search(r"rate\(|increase\(|/ |count", query.expr):
                    assert panel.unit in allowed, query.expr
        if re.match(r"(topk\(\d+, )?(sum by \([^)]*\) \()?rate\([^/]*_bytes_total", query.expr):
            assert panel.unit == "Bps"


def test_titles_of_tables_columns_are_from_their_queries() -> None:
    for dashboard, panel in PANELS:
        if panel.kind != "table":
            continue
        letters = [chr(ord("A") + number) for number in range(len(panel.queries))]
        for name in panel.columns:
            if name.startswith("Value #"):
                assert name.removeprefix("Value #") in letters, (dashboard.uid, panel.title)


def test_json_is_what_the_role_has() -> None:
    files = {
        path.stem for path in (Path(__file__).parents[3] / "roles/grafana/files/dashboards").glob("*.json")
    }
    assert files == {dashboard.uid for dashboard in DASHBOARDS}

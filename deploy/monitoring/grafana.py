"""Grafana's JSON of a dashboard, as its dashboard schema 41 (Grafana 11.6 and 12) describes it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deploy.monitoring.panel import GREEN, Dashboard, Panel, Query, Row, Variable

SCHEMA_VERSION = 41
_TAG = "deploy"
_WIDTH = 24
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

Json = dict[str, Any]


def dashboard_text(dashboard: Dashboard) -> str:
    """The file of a dashboard."""
    return json.dumps(dashboard_json(dashboard), indent=1, sort_keys=True) + "\n"


def dashboard_json(dashboard: Dashboard) -> Json:
    """The dashboard as Grafana loads it."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.meaning,
        "tags": [_TAG],
        "schemaVersion": SCHEMA_VERSION,
        "timezone": "browser",
        "editable": False,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "links": [_other_dashboards()],
        "templating": {"list": [_datasource(), *map(_variable, dashboard.variables)]},
        "annotations": {"list": []},
        "panels": _panels(dashboard.rows),
    }


def _other_dashboards() -> Json:
    return {
        "type": "dashboards",
        "title": "Dashboards",
        "icon": "external link",
        "tooltip": "",
        "url": "",
        "tags": [_TAG],
        "asDropdown": True,
        "targetBlank": False,
        "includeVars": True,
        "keepTime": True,
    }


def _datasource() -> Json:
    return {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "hide": 2,
    }


def _variable(variable: Variable) -> Json:
    made: Json = {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": _DATASOURCE,
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": 2,
        "sort": 7,
        "multi": variable.several,
        "includeAll": variable.several,
    }
    if variable.several:
        made |= {"allValue": ".*", "current": {"text": "All", "value": "$__all", "selected": True}}
    return made


def _panels(rows: Sequence[Row]) -> list[Json]:
    made: list[Json] = []
    top = 0
    for row in rows:
        made.append(
            {
                "type": "row",
                "id": len(made) + 1,
                "title": row.title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": top, "w": _WIDTH, "h": 1},
                "panels": [],
            }
        )
        top += 1
        left, tallest = 0, 0
        for panel in row.panels:
            if left + panel.width > _WIDTH:
                top, left, tallest = top + tallest, 0, 0
            place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
            made.append({"id": len(made) + 1, "gridPos": place, **_panel(panel)})
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest
    return made


def _panel(panel: Panel) -> Json:
    is_table = panel.kind == "table"
    made: Json = {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": _DATASOURCE,
        "targets": [
            _target(query, chr(ord("A") + number), panel.kind) for number, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": list(_overrides(panel))},
        "options": _OPTIONS[panel.kind],
    }
    if is_table:
        made["transformations"] = _table(panel.columns)
    return made


def _target(query: Query, name: str, kind: str) -> Json:
    lasts = kind == "timeseries"
    return {
        "refId": name,
        "datasource": _DATASOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "range": lasts,
        "instant": not lasts,
        "format": "table" if kind == "table" else "time_series",
    }


_LEGEND = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
_REDUCED = {"values": False, "calcs": ["lastNotNull"], "fields": ""}
_OPTIONS: Mapping[str, Json] = {
    "timeseries": {"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    "stat": {
        "reduceOptions": _REDUCED,
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "textMode": "auto",
        "wideLayout": True,
        "showPercentChange": False,
        "percentChangeColorMode": "standard",
        "orientation": "auto",
    },
    "gauge": {
        "reduceOptions": _REDUCED,
        "showThresholdLabels": False,
        "showThresholdMarkers": True,
        "sizing": "auto",
        "minVizWidth": 75,
        "minVizHeight": 75,
        "orientation": "auto",
    },
    "bargauge": {
        "reduceOptions": _REDUCED,
        "displayMode": "basic",
        "valueMode": "color",
        "namePlacement": "auto",
        "showUnfilled": True,
        "sizing": "auto",
        "minVizWidth": 8,
        "minVizHeight": 16,
        "maxVizHeight": 300,
        "orientation": "horizontal",
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
}


def _defaults(panel: Panel) -> Json:
    steps = [{"value": value, "color": colour} for value, colour in panel.thresholds]
    made: Json = {
        "unit": panel.unit,
        "thresholds": {
            "mode": "absolute",
            "steps": [{"value": None, "color": GREEN}, *steps],
        },
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
    }
    if panel.minimum is not None and panel.kind != "table":
        made["min"] = panel.minimum
    if panel.maximum is not None:
        made["max"] = panel.maximum
    if panel.link:
        made["links"] = [_link(panel)]
    if panel.kind == "timeseries":
        made["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 60 if panel.stacked else 10,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        }
    return made


def _link(panel: Panel) -> Json:
    """From a value to another dashboard, where it is chosen."""
    uid, variable = panel.link or ("", "")
    label = panel.link_label or variable
    value = f"${{__data.fields.{label}}}" if panel.kind == "table" else f"${{__field.labels.{label}}}"
    chosen = f"var-{variable}={value}" if variable else "${__all_variables}"
    return {
        "type": "link",
        "title": f"Open {uid.removeprefix('deploy-')}",
        "icon": "",
        "tooltip": "",
        "tags": [],
        "url": f"/d/{uid}?{chosen}&${{__url_time_range}}",
        "asDropdown": False,
        "targetBlank": False,
        "includeVars": False,
        "keepTime": False,
    }


def _overrides(panel: Panel) -> Iterator[Json]:
    for title, unit in panel.columns.values():
        if unit:
            yield {
                "matcher": {"id": "byName", "options": title},
                "properties": [{"id": "unit", "value": unit}],
            }


def _table(columns: Mapping[str, tuple[str, str]]) -> list[Json]:
    """One line for all queries' values with the same labels; columns in the order in which they are named."""
    return [
        {"id": "merge", "options": {}},
        {"id": "filterFieldsByName", "options": {"include": {"names": list(columns)}}},
        {
            "id": "organize",
            "options": {
                "indexByName": {name: place for place, name in enumerate(columns)},
                "renameByName": {name: title for name, (title, _) in columns.items()},
            },
        },
    ]

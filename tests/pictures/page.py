"""A dashboard as one picture: its panels where Grafana's grid has them."""

from collections.abc import Iterator
from datetime import UTC, datetime

from deploy.monitoring.grafana import dashboard_json
from deploy.monitoring.panel import Dashboard, Panel
from tests.pictures.answers import Source
from tests.pictures.canvas import FAINT, Box, Canvas
from tests.pictures.kinds import DRAW, frame, nothing

WIDTH = 1320
_COLUMNS, _CELL, _GAP, _HEAD, _MARGIN = 24, 36, 6, 64, 10


def places(dashboard: Dashboard) -> Iterator[tuple[str, Panel | None, Box]]:
    """Title, panel (none for a row's title) and place of everything, as the JSON for Grafana has it."""
    panels = {panel.title: panel for panel in dashboard.panels}
    column = (WIDTH - 2 * _MARGIN) / _COLUMNS
    for made in dashboard_json(dashboard)["panels"]:
        grid, title = made["gridPos"], made["title"]
        box = Box(
            _MARGIN + grid["x"] * column, _HEAD + grid["y"] * _CELL, grid["w"] * column, grid["h"] * _CELL
        )
        panel = None if made["type"] == "row" else panels[title]
        yield title, panel, box.inside(left=_GAP / 2, top=_GAP / 2, right=_GAP / 2, bottom=_GAP / 2)


def drawn(dashboard: Dashboard, source: Source, job: str) -> Canvas:
    """The picture of a dashboard."""
    everything = list(places(dashboard))
    canvas = Canvas(WIDTH, round(max(box.top + box.height for _, _, box in everything)) + _MARGIN)
    _head(canvas, dashboard, source, job)
    for title, panel, box in everything:
        if panel is None:
            canvas.text((box.left + 2, box.middle[1]), title.replace("$job_id", job), size=14, bold=True)
            continue
        inner = frame(canvas, box, panel)
        if not DRAW[panel.kind](canvas, inner, panel, source):
            nothing(canvas, inner, panel)
    return canvas


def _head(canvas: Canvas, dashboard: Dashboard, source: Source, job: str) -> None:
    start, end = (datetime.fromtimestamp(one, UTC) for one in (source.span.start, source.span.end))
    canvas.text((_MARGIN + 4, 20), dashboard.title, size=20, bold=True)
    chosen = [f"{one.label}: {'All' if one.several else job}" for one in dashboard.variables]
    canvas.text((_MARGIN + 4, 46), "    ".join(chosen), size=12, colour=FAINT)
    shown = f"{start:%Y-%m-%d %H:%M} to {end:%H:%M} UTC"
    canvas.text((WIDTH - _MARGIN - 4, 20), shown, size=12, colour=FAINT, align="right")
    by = "drawn from Prometheus by tests/pictures, not by Grafana"
    canvas.text((WIDTH - _MARGIN - 4, 46), by, size=11, colour=FAINT, align="right")

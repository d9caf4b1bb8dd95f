"""Pictures have every panel of their dashboard, with its title, and say where they are from."""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest
from PIL import Image

from deploy.monitoring.dashboards import DASHBOARDS
from deploy.monitoring.panel import ORANGE, RED, Dashboard, Kind, Panel, Query, Row
from tests.pictures.answers import Line, Source, Span
from tests.pictures.canvas import Canvas, shortened, width_of
from tests.pictures.kinds import COLOURS, DRAW, colour_of
from tests.pictures.page import WIDTH, drawn, places

SPAN = Span(start=0, end=600, step=60)
PICTURES = Path(__file__).parents[3] / "docs/pictures"


@dataclass(frozen=True)
class MadeUp(Source):
    """The same answer to everything."""

    names: tuple[str, ...] = ("node1", "node2")

    def lines(self, panel: Panel) -> list[Line]:
        return [Line(name, [0.5] * len(self.span.times)) for name in self.names if panel.queries]

    def values(self, panel: Panel) -> list[Line]:
        return [Line(name, [0.5]) for name in self.names if panel.queries]

    def rows(self, panel: Panel) -> list[dict[str, str | float]]:
        return [{title: name for title, _ in panel.columns.values()} for name in self.names]


def source(*names: str) -> MadeUp:
    return MadeUp("", SPAN, str, names)


def texts(canvas: Canvas) -> list[str]:
    return [each.get_text() for axes in canvas.figure.axes for each in axes.texts]


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.uid)
def test_every_panel_has_its_place_within_the_picture(dashboard: Dashboard) -> None:
    found = list(places(dashboard))
    assert [panel for _, panel, _ in found if panel] == dashboard.panels
    for title, _, box in found:
        assert box.left >= 0, title
        assert box.left + box.width <= WIDTH, title


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.uid)
def test_titles_and_reasons_are_written(dashboard: Dashboard) -> None:
    said = texts(drawn(dashboard, source(), "17"))
    for panel in dashboard.panels:
        assert any(panel.title.startswith(text.rstrip("…")) for text in said if text), panel.title
    assert said.count("No data") == len(dashboard.panels)
    assert {f"needs {panel.needs}" for panel in dashboard.panels if panel.needs} <= set(said)
    assert "drawn from Prometheus by tests/pictures, not by Grafana" in said


def test_every_kind_of_panel_can_be_drawn() -> None:
    assert set(DRAW) == set(get_args(Kind))


@pytest.mark.parametrize("kind", get_args(Kind))
def test_names_and_values_are_written(kind: Kind) -> None:
    panel = Panel("Of all", "percentunit", (Query("use"),), kind, width=12, columns={"node": ("Node", "")})
    dashboard = Dashboard("deploy-test", "Test", "", (Row("Now", (panel,)),))
    said = texts(drawn(dashboard, source("node1", "node2"), ""))
    assert "No data" not in said
    if kind != "gauge":
        assert {"node1", "node2"} <= set(said)
    if kind in {"stat", "gauge", "bargauge"}:
        assert "50%" in said


def test_what_has_no_room_is_counted() -> None:
    panel = Panel("Of all", "short", (Query("use"),))
    dashboard = Dashboard("deploy-test", "Test", "", (Row("Now", (panel,)),))
    names = [f"the long name of node{number}" for number in range(40)]
    said = texts(drawn(dashboard, source(*names), ""))
    shown = [text for text in said if text in names]
    assert f"and {40 - len(shown)} more" in said


def test_colours_are_those_of_the_thresholds() -> None:
    panel = Panel("", "celsius", (), thresholds=((75, ORANGE), (85, RED)))
    colours = [colour_of(panel, value) for value in (20, 75, 90)]
    assert colours == [COLOURS["green"], COLOURS["orange"], COLOURS["red"]]


def test_texts_are_shortened_to_the_room() -> None:
    assert shortened("short", 100) == "short"
    long = shortened("a title that is far too long", 60)
    assert long.endswith("…")
    assert width_of(long) <= 60


def test_a_picture_is_a_small_file(tmp_path: Path) -> None:
    drawn(DASHBOARDS[0], source("node1"), "").save(tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size < 200_000


def test_every_dashboard_has_a_picture() -> None:
    names = {dashboard.uid.removeprefix("deploy-") for dashboard in DASHBOARDS}
    assert {path.stem for path in PICTURES.glob("*.png")} == names
    for dashboard in DASHBOARDS:
        bottom = max(box.top + box.height for _, _, box in places(dashboard))
        with Image.open(PICTURES / f"{dashboard.uid.removeprefix('deploy-')}.png") as image:
            # One of another size was drawn before panels came or went.
            assert image.width == WIDTH
            assert 0 <= image.height - bottom < 20, dashboard.uid

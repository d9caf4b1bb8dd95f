"""How each kind of panel is drawn: as Grafana draws it, as far as a picture needs it."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np

from deploy.monitoring.panel import GREEN, Panel
from tests.pictures.answers import Source, Span
from tests.pictures.canvas import BORDER, EMPTY, FAINT, INK, POINTS, Box, Canvas, shortened, width_of
from tests.pictures.scale import limits, ticks
from tests.pictures.units import written

COLOURS = {"green": "#56a64b", "orange": "#f2840d", "red": "#e02f44"}
_PALETTE = (
    *("#56a64b", "#e0b400", "#3274d9", "#ff780a", "#e02f44", "#8f3bb8"),
    *("#37872d", "#b88a00", "#1f60c4", "#c15c17", "#a3124b", "#5794f2"),
)
_LEGEND, _LINES, _SMALL = 17, 3, 10
_ROW, _LABELS = 24, 66
_MINUTES = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
Draw = Callable[[Canvas, Box, Panel, Source], bool]


def colour_of(panel: Panel, value: float) -> str:
    """The colour that the panel's thresholds give a value."""
    holding = [colour for since, colour in panel.thresholds if value >= since]
    return COLOURS[holding[-1] if holding else GREEN]


def timeseries(canvas: Canvas, box: Box, panel: Panel, source: Source) -> bool:
    """Lines or areas over time with their names below."""
    lines = source.lines(panel)
    if not lines:
        return False
    used = _legend(canvas, box, [line.name for line in lines])
    span = source.span
    plot = box.inside(left=_LABELS, top=6, right=20, bottom=used + 22)
    axes = canvas.axes(plot)
    below = np.zeros(len(span.times))
    tops = []
    for number, line in enumerate(lines):
        values = np.array(line.values)
        seen = values + below if panel.stacked else values
        floor = below if panel.stacked else np.full(len(values), panel.minimum or 0.0)
        tops += seen.tolist()
        if panel.stacked and not np.nan_to_num(values).any():
            continue  # its line would only hide another
        colour = _PALETTE[number % len(_PALETTE)]
        opacity = 0.6 if panel.stacked else 0.1
        axes.fill_between(span.times, floor, seen, color=colour, alpha=opacity, linewidth=0)
        axes.plot(span.times, seen, color=colour, linewidth=1.3 * POINTS)
        below = below + np.nan_to_num(values) if panel.stacked else below
    low, high = limits(panel, tops)
    axes.set(xlim=(span.start, span.end), ylim=(low, high), facecolor="none")
    values_at, times_at = ticks(low, high, panel.unit), _moments(span, plot.width)
    axes.set_yticks(values_at, [written(value, panel.unit) for value in values_at])
    axes.set_xticks(times_at, [f"{datetime.fromtimestamp(one, UTC):%H:%M}" for one in times_at])
    axes.tick_params(length=0, pad=4, labelsize=10 * POINTS, labelcolor=FAINT)
    axes.grid(color=EMPTY, linewidth=POINTS)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    return True


def _moments(span: Span, width: float) -> list[float]:
    """Whole minutes, as many as there is room for."""
    wished = (span.end - span.start) / max(1, width // 60)
    every = next(step for step in _MINUTES if step >= wished)
    first = math.ceil(span.start / every)
    return [float(place * every) for place in range(first, int(span.end // every) + 1)]


def _legend(canvas: Canvas, box: Box, names: Sequence[str]) -> float:
    """Names in three lines at most, at the bottom; returns how much they take."""
    more = f"and {len(names)} more"
    rows: list[list[float]] = [[]]
    left, shown = 8.0, 0
    for name in names:
        needed = _room_of(name, box)
        last = len(rows) == _LINES and shown + 1 < len(names)
        if rows[-1] and left + needed > box.width - (width_of(more, _SMALL) + 10 if last else 0):
            if len(rows) == _LINES:
                break
            rows.append([])
            left = 8.0
        rows[-1].append(left)
        left, shown = left + needed, shown + 1
    bottom = box.top + box.height
    starts = [(start, row) for row, places in enumerate(rows) for start in places]
    for number, (start, row) in enumerate(starts):
        height = bottom - (len(rows) - row - 0.5) * _LEGEND
        canvas.rectangle(Box(box.left + start, height - 1, 12, 3), _PALETTE[number % len(_PALETTE)])
        name = shortened(names[number], box.width - 40, _SMALL)
        canvas.text((box.left + start + 17, height), name, size=_SMALL, colour=FAINT)
    if shown < len(names):
        place = (box.left + left, bottom - 0.5 * _LEGEND)
        canvas.text(place, f"and {len(names) - shown} more", size=_SMALL, colour=FAINT)
    return len(rows) * _LEGEND


def _room_of(name: str, box: Box) -> float:
    return width_of(shortened(name, box.width - 40, _SMALL), _SMALL) + 30


def stat(canvas: Canvas, box: Box, panel: Panel, source: Source) -> bool:
    """Large numbers, with their names where there are several."""
    lines = source.values(panel)
    if not lines:
        return False
    columns = _columns(len(lines), box)
    rows = math.ceil(len(lines) / columns)
    for number, line in enumerate(lines):
        row, column = divmod(number, columns)
        strip = box.strip(row * box.height / rows, box.height / rows)
        cell = strip.part(column, columns).inside(left=6, right=6)
        text = written(line.last, panel.unit)
        named = len(lines) > 1
        fitting = 40 * (cell.width - 8) / width_of(text, 40, bold=True)
        size = min(44.0, cell.height * (0.42 if named else 0.5), fitting)
        across, down = cell.middle
        colour = colour_of(panel, line.last)
        if named:
            name = shortened(line.name, cell.width, 10)
            canvas.text((across, down - size * 0.62), name, size=10, align="center")
            down += 8
        canvas.text((across, down), text, size=size, colour=colour, align="center", bold=True)
    return True


def _columns(cells: int, box: Box) -> int:
    """So many that cells are about twice as wide as high."""
    fit = [max(1, round(math.sqrt(cells * box.width / box.height / 2.2))), int(box.width // 90), cells]
    return max(1, min(fit))


def gauge(canvas: Canvas, box: Box, panel: Panel, source: Source) -> bool:
    """An arc from the smallest to the greatest value, and the number in it."""
    lines = source.values(panel)
    if not lines:
        return False
    value = lines[0].last
    low, high = limits(panel, [value])
    across, down = box.middle
    radius = min(box.width / 2 - 16, box.height * 0.56)
    middle = (across, down + radius * 0.2)
    part = min(max((value - low) / (high - low), 0), 1)
    canvas.arc(middle, radius - 6, radius * 0.26, (0, 1), EMPTY)
    canvas.arc(middle, radius - 6, radius * 0.26, (0, part), colour_of(panel, value))
    edges = [low, *(since for since, _ in panel.thresholds), high]
    for first, last in pairwise(edges):
        ends = ((first - low) / (high - low), (last - low) / (high - low))
        canvas.arc(middle, radius, 4, ends, colour_of(panel, first))
    text = written(value, panel.unit)
    size = min(30.0, 30 * radius / width_of(text, 30, bold=True))
    canvas.text(middle, text, size=size, colour=colour_of(panel, value), align="center", bold=True)
    return True


def bargauge(canvas: Canvas, box: Box, panel: Panel, source: Source) -> bool:
    """A bar for each value, its name at the left."""
    lines = source.values(panel)
    if not lines:
        return False
    low, high = limits(panel, [line.last for line in lines])
    height = min(30.0, box.height / len(lines))
    names = min(box.width * 0.4, max(width_of(line.name, 10) for line in lines) + 12)
    texts = max(width_of(written(line.last, panel.unit), 12, bold=True) for line in lines) + 14
    for number, line in enumerate(lines):
        strip = box.strip(number * height, height).inside(left=10, right=6, top=2, bottom=2)
        middle = strip.middle[1]
        canvas.text(
            (strip.left, middle), shortened(line.name, names - 8, min(10, height)), size=min(10, height)
        )
        bar = strip.inside(left=names, right=texts)
        canvas.rectangle(bar, EMPTY)
        part = min(max((line.last - low) / (high - low), 0), 1)
        canvas.rectangle(Box(bar.left, bar.top, bar.width * part, bar.height), colour_of(panel, line.last))
        place = (strip.left + strip.width, middle)
        text, colour = written(line.last, panel.unit), colour_of(panel, line.last)
        canvas.text(place, text, size=min(12, height), colour=colour, align="right", bold=True)
    return True


def table(canvas: Canvas, box: Box, panel: Panel, source: Source) -> bool:
    """Rows under the columns' titles, as many as there is room for."""
    rows = source.rows(panel)
    if not rows:
        return False
    units = dict(panel.columns.values())
    titles = [title for title in units if any(title in row for row in rows)]
    cells = [[_cell(row, title, units[title]) for title in titles] for row in rows]
    widths = _widths([titles, *cells], box.width - 16)
    room = int(box.height // _ROW) - 1
    shown = cells if len(cells) <= room else cells[: room - 1]
    for number, row in enumerate([titles, *shown]):
        strip = box.strip(number * _ROW, _ROW).inside(left=8, right=8)
        canvas.rectangle(Box(strip.left, strip.top + _ROW - 1, strip.width, 1), EMPTY)
        left = strip.left
        for text, width in zip(row, widths, strict=True):
            colour = INK if number else "#1f60c4"
            canvas.text((left, strip.middle[1]), shortened(text, width - 10), colour=colour, bold=not number)
            left += width
    if len(shown) < len(cells):
        place = (box.left + 8, box.top + (len(shown) + 1.5) * _ROW)
        canvas.text(place, f"and {len(cells) - len(shown)} more", size=10, colour=FAINT)
    return True


def _cell(row: Mapping[str, str | float], title: str, unit: str) -> str:
    value = row.get(title, "")
    return written(value, unit or "short") if isinstance(value, float) else value


def _widths(rows: Sequence[Sequence[str]], room: float) -> list[float]:
    """Of columns: what their texts need, and a part of what is left; less where it is not enough."""
    needed = [max(width_of(text, bold=True) for text in column) + 14 for column in zip(*rows, strict=True)]
    left = room - sum(needed)
    if left >= 0:
        return [width + left / len(needed) for width in needed]
    fair = room / len(needed)
    small = sum(width for width in needed if width <= fair)
    large = sum(width for width in needed if width > fair)
    return [width if width <= fair else width / large * (room - small) for width in needed]


DRAW: Mapping[str, Draw] = {
    "timeseries": timeseries,
    "stat": stat,
    "gauge": gauge,
    "bargauge": bargauge,
    "table": table,
}
"""Each draws its panel and says whether there was anything to draw."""


def nothing(canvas: Canvas, box: Box, panel: Panel) -> None:
    """A panel without data, and why."""
    across, down = box.middle
    canvas.text((across, down), "No data", size=14, colour=FAINT, align="center")
    if panel.needs:
        canvas.text((across, down + 20), f"needs {panel.needs}", size=10, colour=FAINT, align="center")


def frame(canvas: Canvas, box: Box, panel: Panel) -> Box:
    """A panel's border and title; returns what is left in it."""
    canvas.rectangle(box, "#ffffff", BORDER)
    canvas.text(
        (box.left + 8, box.top + 14),
        shortened(panel.title, box.width - 16, 12, bold=True),
        size=12,
        bold=True,
    )
    return box.inside(top=28, bottom=6)

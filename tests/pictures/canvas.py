"""A picture measured in pixels from its upper left corner, and boxes in it."""

import io
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle, Wedge
from matplotlib.textpath import text_to_path
from PIL import Image

POINTS = 0.72
"""Of a pixel."""
_COLOURS = 256
INK, FAINT, BORDER, PAPER, BACK, EMPTY = "#24292e", "#6e757c", "#dcdfe3", "#ffffff", "#f4f5f5", "#e8eaed"


@dataclass(frozen=True)
class Box:
    """A part of the picture."""

    left: float
    top: float
    width: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        """Its middle."""
        return self.left + self.width / 2, self.top + self.height / 2

    def inside(self, *, left: float = 0, top: float = 0, right: float = 0, bottom: float = 0) -> "Box":
        """What margins leave of it."""
        return Box(self.left + left, self.top + top, self.width - left - right, self.height - top - bottom)

    def strip(self, top: float, height: float) -> "Box":
        """A part of it over its whole width."""
        return replace(self, top=self.top + top, height=height)

    def part(self, number: int, of: int) -> "Box":
        """One of equal parts side by side."""
        width = self.width / of
        return replace(self, left=self.left + number * width, width=width)


class Canvas:
    """Draws into a figure whose unit is the pixel."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self.figure = Figure(figsize=(width / 100, height / 100), dpi=100, facecolor=BACK)
        self._all = self.figure.add_axes((0, 0, 1, 1))
        self._all.set_xlim(0, width)
        self._all.set_ylim(height, 0)
        self._all.set_axis_off()

    def axes(self, box: Box) -> Axes:
        """A coordinate system of its own."""
        width, height = self._width, self._height
        return self.figure.add_axes(
            (box.left / width, 1 - (box.top + box.height) / height, box.width / width, box.height / height)
        )

    def text(
        self,
        place: tuple[float, float],
        text: str,
        *,
        size: float = 11,
        colour: str = INK,
        align: str = "left",
        bold: bool = False,
    ) -> None:
        """One line, vertically centred on its place."""
        made = self._all.text(*place, text, fontsize=size * POINTS, color=colour, parse_math=False)
        made.set(ha=align, va="center_baseline", fontweight="bold" if bold else "normal")

    def rectangle(self, box: Box, colour: str, edge: str = "none") -> None:
        """A filled rectangle."""
        place = (box.left, box.top)
        self._all.add_patch(
            Rectangle(place, box.width, box.height, facecolor=colour, edgecolor=edge, linewidth=POINTS)
        )

    def arc(
        self, middle: tuple[float, float], radius: float, width: float, part: tuple[float, float], colour: str
    ) -> None:
        """A part of a gauge's arc, which opens downwards: from 0, on the left, to 1."""
        first, last = (150 + 240 * one for one in part)
        self._all.add_patch(Wedge(middle, radius, first, last, width=width, facecolor=colour))

    def save(self, path: Path) -> None:
        """Writes a small PNG."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png")
        with Image.open(buffer) as image:
            few = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        few.save(path, optimize=True)


@cache
def width_of(text: str, size: float = 11, *, bold: bool = False) -> float:
    """How many pixels a text takes."""
    font = FontProperties(size=size * POINTS, weight="bold" if bold else "normal")
    width: float = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
    return width / POINTS


def shortened(text: str, room: float, size: float = 11, *, bold: bool = False) -> str:
    """As much of a text as there is room for."""
    if width_of(text, size, bold=bold) <= room:
        return text
    while text and width_of(f"{text}…", size, bold=bold) > room:
        text = text[:-1]
    return f"{text.rstrip()}…"

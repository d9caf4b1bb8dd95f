"""A picture of figures that `make bench` kept: ``python -m tests.bench.picture``."""

import argparse
import json
import statistics
import sys
from pathlib import Path

from matplotlib.figure import Figure

from tests.bench.figures import Figures, Measured, of_parts

_DOCS = Path(__file__).parents[2] / "docs"
_SHOWN = (
    (
        "A rerun that finds nothing to do",
        *(Measured.RERUN, Measured.RERUN_PYINFRA, Measured.RERUN_TUNED),
        *(Measured.RERUN_FULL, Measured.RERUN_PLAIN),
    ),
    ("A first deployment, and the least it could take", Measured.FIRST, Measured.FLOOR),
    ("One node more", Measured.ONE_TO_3, Measured.ONE_TO_9),
)
_OURS, _OTHERS = "#2a6f97", "#a9b4bc"


def picture(figures: Figures) -> Figure:
    """Bars of the medians, with the fastest and the slowest, a group of bars for each question."""
    groups = [group for group in _SHOWN if group[1] in figures]
    heights = [len(group) for group in groups]
    figure = Figure(figsize=(9, 0.5 * sum(heights)), layout="constrained", dpi=120)
    rows = figure.subplots(len(groups), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axes, (title, *all_of) in zip(rows, groups, strict=True):
        shown = [measured for measured in all_of if isinstance(measured, Measured)]
        medians = [statistics.median(figures[measured]) for measured in shown]
        spread = [
            [middle - min(figures[measured]) for measured, middle in zip(shown, medians, strict=True)],
            [max(figures[measured]) - middle for measured, middle in zip(shown, medians, strict=True)],
        ]
        names = [measured.partition(": ")[2] for measured in shown]
        colors = [_OURS if "deploy cluster" in name or "to " in name else _OTHERS for name in names]
        bars = axes.barh(names, medians, xerr=spread, color=colors, ecolor="#444444", capsize=2)
        axes.bar_label(bars, [f"{seconds:.1f} s" for seconds in medians], padding=6, fontsize=8)
        axes.invert_yaxis()
        axes.set_title(title, loc="left", fontsize=10)
        axes.tick_params(labelsize=8)
        axes.set_xlim(0, max(map(max, (figures[measured] for measured in shown))) * 1.15)
        axes.spines[["top", "right"]].set_visible(False)
    rows[-1].set_xlabel("seconds, medians; thin lines: fastest to slowest", fontsize=8)
    return figure


def main() -> int:
    """Reads docs/benchmarks.json and writes docs/benchmarks.png, or what it is told."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.picture", description=__doc__)
    parser.add_argument("figures", type=Path, nargs="?", default=_DOCS / "benchmarks.json")
    parser.add_argument("file", type=Path, nargs="?", default=_DOCS / "benchmarks.png")
    options = parser.parse_args()
    parts = json.loads(options.figures.read_text(encoding="utf-8"))
    picture(of_parts({name: part["seconds"] for name, part in parts.items()})).savefig(options.file)
    sys.stdout.write(f"{options.file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

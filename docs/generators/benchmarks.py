"""docs/benchmarks.md: the tables of what `make bench` found, from benchmarks.json, which it wrote."""

import json
import runpy
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generators.tables import with_table

Bench = Mapping[str, Any]
"""The module tests/bench/figures.py; it is in no package that one could import from here."""


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The document with its tables as they should be."""
    bench = runpy.run_path(str(root / "tests" / "bench" / "figures.py"))
    parts = json.loads((root / "docs" / "benchmarks.json").read_text(encoding="utf-8"))
    figures = bench["of_parts"]({name: part["seconds"] for name, part in parts.items()})
    path = root / "docs" / "benchmarks.md"
    text = path.read_text(encoding="utf-8")
    text = with_table(text, "ratios", ("ratio", "found", "target", ""), _ratios(bench, figures))
    text = with_table(
        text, "seconds", ("measured", "median, s", "fastest to slowest", "rounds"), _seconds(figures)
    )
    if "ablation" in parts:
        without = parts["ablation"]["seconds"]
        text = with_table(text, "ablation", ("without", *without), bench["rows_without"](without))
    yield path, with_table(text, "machines", ("part", "measured", "on"), _machines(parts))


def _ratios(bench: Bench, figures: Mapping[Any, Any]) -> Iterator[tuple[str, ...]]:
    for goal in bench["goals_of"](figures):
        found = bench["ratio"](goal, figures)
        verdict = "met" if found <= goal.most else "missed"
        yield goal.title, f"{found:.3f}", f"at most {goal.most:.2f}", verdict


def _seconds(figures: Mapping[Any, Any]) -> Iterator[tuple[str, ...]]:
    for measured, seconds in figures.items():
        digits = 1 if max(seconds) >= 1 else 2
        spread = f"{min(seconds):.{digits}f} to {max(seconds):.{digits}f}"
        yield str(measured), f"{statistics.median(seconds):.{digits}f}", spread, str(len(seconds))


def _machines(parts: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, part in parts.items():
        where = "; ".join(part[key] for key in ("machine", "system", "software", "labs"))
        yield name, part["measured"][:10], f"{where}; load {part['load']}"

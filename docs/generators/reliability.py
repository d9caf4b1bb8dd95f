"""docs/reliability.md: what `make reliability`, `make kills` and `make power` saw, from what they wrote."""

import json
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generators.tables import with_table


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The document with its tables as they should be."""
    figures = runpy.run_path(str(root / "tests" / "reliability" / "figures.py"))
    parts = json.loads((root / "docs" / "reliability.json").read_text(encoding="utf-8"))
    path = root / "docs" / "reliability.md"
    text = with_table(path.read_text(encoding="utf-8"), "faults", figures["HEAD"], figures["table"](parts))
    usage = runpy.run_path(str(root / "tests" / "reliability" / "usage.py"))
    text = with_table(text, "usage", usage["USAGE_HEAD"], usage["usage_table"](parts))
    text = with_table(text, "machines", ("measured", "faults", "on"), _machines(parts))
    kills = runpy.run_path(str(root / "tests" / "kills" / "figures.py"))
    killed = json.loads((root / "docs" / "kills.json").read_text(encoding="utf-8"))
    text = with_table(text, "kills", kills["KILLS_HEAD"], kills["kills_table"](killed))
    text = with_table(text, "machines of kills", ("measured", "kinds", "on"), _machines(killed))
    power = runpy.run_path(str(root / "tests" / "power" / "figures.py"))
    lost = json.loads((root / "docs" / "power.json").read_text(encoding="utf-8"))
    text = with_table(text, "power", power["POWER_HEAD"], power["power_table"](lost))
    yield path, with_table(text, "machines of power", ("measured", "kinds", "on"), _machines(lost))


def _machines(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """What was the same for several faults is said once; rounds of a fault may be of several campaigns."""
    faults: dict[tuple[str, str], dict[str, str]] = {}
    for name, part in parts.items():
        for campaign in (*part.get("before", ()), part):
            where = "; ".join(campaign[key] for key in ("machine", "system", "software", "labs"))
            load = campaign["load"].split()[0]
            faults.setdefault((campaign["measured"][:10], where), {})[name] = load
    for (when, where), loads in faults.items():
        yield when, ", ".join(loads), f"{where}; load at the start of each: {', '.join(loads.values())}"

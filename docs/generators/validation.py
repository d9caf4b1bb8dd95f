"""docs/validation.md: its tables of checks and of the faults that they find; the text around them stays."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deploy.validate.catalog import CHECKS
from generators.tables import with_table


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The document with its tables as they should be."""
    path = root / "docs" / "validation.md"
    text = path.read_text(encoding="utf-8")
    text = with_table(text, "checks", ("check", "what it proves"), _checks())
    text = with_table(text, "faults", ("fault", "check", "what it says"), _faults(root))
    yield path, text


def _checks() -> Iterator[tuple[str, ...]]:
    for check in CHECKS:
        yield f"`{check.name}`", check.proves


def _faults(root: Path) -> Iterator[tuple[str, ...]]:
    """What the tests break on a real cluster. They are no package that one could import from here."""
    found: dict[str, Any] = runpy.run_path(str(root / "tests" / "cluster" / "faults.py"))
    groups = (*found["GROUPS"].values(), found["CONTAINERS"], *found["WATCHED"].values())
    for fault in (fault for faults in groups for fault in faults):
        yield fault.what, f"`{fault.check}`", f"… {fault.says} …"

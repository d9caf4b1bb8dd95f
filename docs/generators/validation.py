"""docs/validation.md: its tables of checks and of the faults that they find; the text around them stays."""

import runpy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from deploy.validate.catalog import CHECKS


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The document with its tables as they should be."""
    path = root / "docs" / "validation.md"
    text = path.read_text(encoding="utf-8")
    text = _with_table(text, "checks", ("check", "what it proves"), _checks())
    text = _with_table(text, "faults", ("fault", "check", "what it says"), _faults(root))
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


def _with_table(text: str, name: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """The text with another table between the marks of that name. Raises ValueError when they are missing."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    first, last = text.index(begin), text.index(end)
    before, after = text[:first], text[last + len(end) :]
    lines = [head, tuple("---" for _ in head), *rows]
    table = "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )
    return f"{before}{begin}\n{table}\n{end}{after}"

"""docs/slurm-testsuite.md: what fails of Slurm's own test suite, and why, from its failures.yml."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from generators.tables import with_table


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The document with its table as it should be: tests with the same reason on a line."""
    known = yaml.safe_load((root / "tests" / "slurm_testsuite" / "failures.yml").read_text(encoding="utf-8"))
    path = root / "docs" / "slurm-testsuite.md"
    text = path.read_text(encoding="utf-8")
    yield path, with_table(text, "failures", ("part", "tests", "why"), _rows(known))


def _rows(known: dict[str, dict[str, str]]) -> Iterator[tuple[str, ...]]:
    for part, failures in known.items():
        reasons: dict[str, list[str]] = {}
        for name, why in failures.items():
            reasons.setdefault(why, []).append(name)
        for why, names in reasons.items():
            yield part, ", ".join(f"`{name}`" for name in names), why

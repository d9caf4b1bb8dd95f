"""docs/slurm-testsuite.md: what came of Slurm's own test suite, and why some of it fails or is skipped."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from generators.tables import with_table


def outputs(root: Path) -> Iterator[tuple[Path, str]]:
    """The document with its tables as they should be: tests with the same reason on a line."""
    known = yaml.safe_load((root / "tests" / "slurm_testsuite" / "failures.yml").read_text(encoding="utf-8"))
    seen = json.loads((root / "docs" / "slurm-testsuite.json").read_text(encoding="utf-8"))
    path = root / "docs" / "slurm-testsuite.md"
    text = path.read_text(encoding="utf-8")
    text = with_table(text, "seen", ("part", "on", "passed", "failed", "skipped"), _seen(seen))
    text = with_table(text, "failures", ("part", "tests", "why"), _failures(known))
    yield path, with_table(text, "skipped", ("part", "tests", "what they say"), _skipped(seen))


def _seen(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for part, seen in parts.items():
        on = f"{seen['measured'][:10]}, slurm-wlm {seen['slurm']}, {seen['machine']}"
        yield part, on, *(str(seen[state]) for state in ("passed", "failed", "skipped"))


def _failures(known: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, ...]]:
    for part, failures in known.items():
        reasons: dict[str, list[str]] = {}
        for name, why in failures.items():
            reasons.setdefault(why, []).append(name)
        for why, names in reasons.items():
            yield part, ", ".join(f"`{name}`" for name in names), why


def _skipped(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    for part, seen in parts.items():
        reasons = seen["why skipped"]
        once = [why for why, number in reasons.items() if number == 1]
        yield from ((part, str(number), why) for why, number in reasons.items() if number > 1)
        if once:
            yield part, f"{len(once)}, one each", "; ".join(once)

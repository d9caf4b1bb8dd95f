"""A service that deploy has not: its role, and a copy of the project that has it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.tracked import copy_tracked

_TOY = Path(__file__).parent
_CATALOG = "deploy/plan/catalog.py"


def with_toy(place: Path) -> Path:
    """A copy of the project with one more service: a directory of its own, and a line that says its turn."""
    copy_tracked(".", place)
    copy_tracked("tests/toy/roles", place / "roles")
    catalog = place / _CATALOG
    text = catalog.read_text(encoding="utf-8")
    catalog.write_text(text.replace('    "probes",\n', '    "probes",\n    "toy",\n'), encoding="utf-8")
    python(place, str(place / "docs/generate.py"))
    return place


def environment(project: Path) -> Mapping[str, str]:
    """What has Python run the code of a copy."""
    return {**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}


def python(project: Path, *arguments: str) -> str:
    """What Python prints that runs the code of a copy."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env=environment(project),
        capture_output=True,
        text=True,
        check=True,
    ).stdout

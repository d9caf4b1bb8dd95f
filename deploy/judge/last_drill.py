"""What the last drill of a site came to, by the reports that `deploy drill` leaves."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from deploy.site import own_files

REPORTS = own_files.DRILLS
"""Their directory, beside the inventory."""
REPORT = "drill-%Y%m%dT%H%M%SZ"
"""The name of a report, in the words of strftime; the file for programs ends in .json."""


@dataclass(frozen=True)
class LastDrill:
    """When it was, and when its backup was made, in seconds since the epoch; passed or failed."""

    at: float
    made_at: float
    outcome: str


def last_drill(directory: Path) -> LastDrill | None:
    """By the newest report in a directory that can be read; None where there is none."""
    return next(_read(sorted(directory.glob("drill-*.json"), reverse=True)), None)


def _read(files: Iterable[Path]) -> Iterator[LastDrill]:
    for file in files:
        try:
            said = json.loads(file.read_text(encoding="utf-8"))
            yield LastDrill(float(said["at"]), float(said["backup"]["made_at"]), str(said["outcome"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue

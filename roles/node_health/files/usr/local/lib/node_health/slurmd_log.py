"""The log of this node's slurmd and its steps."""

from __future__ import annotations

import re
from pathlib import Path

LOG = Path("/var/log/slurm/slurmd.log")
_TAIL_BYTES = 1 << 20


def last_lines(log: Path, pattern: re.Pattern[str]) -> list[str]:
    """The lines of its last MiB in which the pattern is; none where there is no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return []
    return [line for line in text.splitlines() if pattern.search(line)]

"""The unit of MariaDB on a member of the database: how it is, and whether it was started with another key."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_START = "ExecMainStartTimestampMonotonic"


def unit_of_mariadb(module: Any) -> dict[str, str]:  # noqa: ANN401 - an AnsibleModule
    """Some of what systemd says of it."""
    words = ["systemctl", "show", "mariadb", f"--property=ActiveState,{_START}"]
    said = module.run_command(words, check_rc=True)[1]
    return {
        "ActiveState": "inactive",
        **dict(line.split("=", 1) for line in said.splitlines() if "=" in line),
    }


def is_older(unit: Mapping[str, str], file: str) -> bool:
    """Whether it runs, and was started before a file was written that is there."""
    path = Path(file)
    if unit["ActiveState"] != "active" or not path.exists():
        return False
    started = time.time() - time.monotonic() + int(unit.get(_START) or 0) / 1e6
    return path.stat().st_mtime > started

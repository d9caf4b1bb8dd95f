"""What a host's kernel said of broken hardware since some time, as root. Changes nothing."""

from __future__ import annotations

import re
import subprocess
from typing import Any

_SHOWN = 5
_COMPLAINTS = re.compile(
    r"NVRM: Xid|\[Hardware Error\]|EDAC .*\b[CU]E\b|Machine check|Memory failure|I/O error, dev|"
    r"AER: .*(?:Uncorrect|Fatal)|temperature above threshold"
)


def complaints_in(text: str) -> list[str]:
    """The lines of a kernel's log that speak of broken hardware."""
    return [line.strip() for line in text.splitlines() if _COMPLAINTS.search(line)]


def complaints(arguments: dict[str, Any]) -> dict[str, Any]:
    """The first of the kernel's complaints, and how many there are; why it could not be read, if so."""
    argv = ["journalctl", "--dmesg", "--no-pager", "--output=cat", f"--since=@{int(arguments['since'])}"]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=50,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return {"lines": [], "count": 0, "why": str(problem)}
    if done.returncode != 0:
        return {"lines": [], "count": 0, "why": done.stderr.strip() or f"exit code {done.returncode}"}
    found = complaints_in(done.stdout)
    return {"lines": found[:_SHOWN], "count": len(found), "why": ""}

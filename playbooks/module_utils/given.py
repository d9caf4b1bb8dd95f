"""What a role gave somebody on a host, remembered there: it is taken away when it is declared no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.durable import replace_file

DIRECTORY = Path("/var/lib/deploy/given")


def given(name: str) -> dict[str, Any]:
    """What was remembered under a name; nothing where nobody ever did."""
    try:
        content = json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def remember(name: str, content: dict[str, Any]) -> None:
    """Replaces what is remembered under a name; on disk before anything is given that it names."""
    if content == given(name):
        return
    DIRECTORY.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(DIRECTORY / f"{name}.json", json.dumps(content).encode(), 0o600)

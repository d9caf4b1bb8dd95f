"""Validations as data for programs, and the last ones of a site, kept in ``.deploy/validations``."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.durable import write_private
from deploy.validate.result import Validation

_DIRECTORY = "validations"
_KEPT = 30
_NAME = "%Y%m%dT%H%M%SZ"


def as_data(validation: Validation) -> dict[str, Any]:
    """The whole validation; ``at`` is when it began, in UTC."""
    return {
        "cluster": validation.cluster,
        "at": began_at(validation),
        "seconds": round(validation.seconds, 1),
        "exit_code": int(validation.exit_code),
        "unreachable": list(validation.unreachable),
        "checks": [
            {
                "check": check.check,
                "proves": check.proves,
                "outcome": check.outcome.value,
                "verdicts": [{**asdict(result), "outcome": result.outcome.value} for result in check.results],
            }
            for check in validation.checks
        ],
    }


def began_at(validation: Validation) -> str:
    """When it began, in UTC."""
    return datetime.fromtimestamp(validation.began, UTC).isoformat(timespec="seconds")


def keep(state: Path, validation: Validation) -> None:
    """Keeps a validation in a site's directory ``.deploy``, and the last thirty in all."""
    directory = state / _DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    write_private(directory / _name(validation.began), json.dumps(as_data(validation)) + "\n")
    for old in _files(state)[:-_KEPT]:
        old.unlink(missing_ok=True)


def last_before(state: Path, moment: float) -> Mapping[str, Any] | None:
    """The last kept validation that began before a time, in seconds since the epoch."""
    for path in reversed(_files(state)):
        if path.name < _name(moment):
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            if isinstance(content, dict):
                return content
    return None


def _files(state: Path) -> list[Path]:
    return sorted((state / _DIRECTORY).glob("*.json"))


def _name(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime(f"{_NAME}.json")

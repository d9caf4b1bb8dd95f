"""Budgets as Slurm has them: a QOS whose description says what is granted, and slurmctld's count of use."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

_TERMS = re.compile(
    r"budget: (?P<hours>\S+) hours (?P<period>a month|a quarter|a year|in all), "
    r"then (?:stop|go on in (?P<lower>\S+))"
)
_COUNT = re.compile(r"([\w/:.-]+)=(?:N|\d+)\((\d+)\)")
_PLACES = {"GrpTRESMins=": 0, "GrpTRESRunMins=": 1}
_MONTHS = {"a month": 1, "a quarter": 3, "a year": 12}
_SECONDS = 60
_MINUTES = 60
_YEAR = 12


class UnansweredError(Exception):
    """Slurm did not do what it was asked to, and why."""

    def __init__(self, program: str, why: object) -> None:
        super().__init__(f"{program}: {why}")


class Terms(NamedTuple):
    """What is granted: hours by resource in each period, and the QOS in which jobs go on, if they do."""

    hours: dict[str, int]
    period: str
    lower_qos: str


class Use(NamedTuple):
    """Hours by resource: what was used, and what running jobs may still use until their time limits."""

    used: dict[str, float]
    running: dict[str, float]


def ask(*command: str) -> str:
    """What a command of Slurm's prints. Raises UnansweredError."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "SLURM_TIME_FORMAT": "standard"}
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise UnansweredError(command[0], problem) from problem
    if answer.returncode != 0:
        said = " ".join((answer.stderr or answer.stdout).split())
        raise UnansweredError(command[0], said or f"exit code {answer.returncode}")
    return answer.stdout


def terms(description: str) -> Terms | None:
    """What the description of a QOS grants; None where it is of no budget."""
    match = _TERMS.fullmatch(description.strip())
    if not match:
        return None
    pairs = (pair.partition("=") for pair in match["hours"].split(","))
    hours = {name: int(amount) for name, _, amount in pairs if amount.isdigit()}
    return Terms(hours, match["period"], match["lower"] or "")


def all_terms() -> dict[str, Terms]:
    """The budgets of the cluster by project. Raises UnansweredError."""
    listed = ask("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name,description")
    rows = (line.partition("|") for line in listed.splitlines())
    found = {name: terms(description) for name, _, description in rows}
    return {name: said for name, said in found.items() if said}


def uses(text: str) -> dict[str, Use]:
    """What `scontrol show assoc_mgr flags=qos` says of each QOS."""
    found: dict[str, Use] = {}
    name = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("QOS="):
            name = line.removeprefix("QOS=").split("(")[0]
            found[name] = Use({}, {})
        for key, place in _PLACES.items():
            if name and line.startswith(key):
                counts = _COUNT.findall(line.removeprefix(key))
                found[name][place].update({resource: int(count) / _MINUTES for resource, count in counts})
    return found


def all_uses(names: Iterable[str]) -> Mapping[str, Use]:
    """The use of budgets. Raises UnansweredError."""
    listed = ",".join(names)
    return uses(ask("scontrol", "show", "assoc_mgr", "flags=qos", f"qos={listed}")) if listed else {}


def bounds(period: str, now: datetime) -> tuple[datetime | None, datetime | None]:
    """When a budget's period began and when the next one begins; None for never."""
    months = _MONTHS.get(period)
    if not months:
        return None, None
    first = (now.month - 1) // months * months
    return _month(now, first), _month(now, first + months)


def _month(now: datetime, month: int) -> datetime:
    """The beginning of a month, counted from 0 of this year."""
    start = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return start.replace(year=now.year + month // _YEAR, month=month % _YEAR + 1)

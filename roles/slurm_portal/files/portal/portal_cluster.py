"""The cluster as its users may see it: partitions with their nodes and free GPUs, and what is planned."""

from __future__ import annotations

import re
from typing import Any

NODES = "partitionname:128,nodelist:128,statelong:64,gres:1024,gresused:1024"
"""The format of sinfo that is read here."""
_COLUMNS = 5
_GPUS = re.compile(r"\bgpu(?::[A-Za-z0-9_.-]+?)?:(\d+)(?=[(,\s]|$)")
_WORD = re.compile(r"(\w+)=(\S*)")
_STATES = {
    "idle": "idle",
    "mixed": "mixed",
    "mixed-": "mixed",  # planned for a job as well
    "allocated": "allocated",
    "completing": "allocated",
    "planned": "idle",
}
_FREE = frozenset({"idle", "mixed", "allocated"})


def partitions(text: str) -> list[dict[str, Any]]:
    """By partition the number of nodes in each state, and GPUs: all, and those that a job could have."""
    found: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) < _COLUMNS:
            continue
        name, state = words[0], _state(words[2])
        here = found.setdefault(
            name, {"name": name, "idle": 0, "mixed": 0, "allocated": 0, "out": 0, "gpus": 0, "gpus_free": 0}
        )
        here[state] += 1
        has, used = _gpus(words[3]), _gpus(words[4])
        here["gpus"] += has
        here["gpus_free"] += max(has - used, 0) if state in _FREE else 0
    return list(found.values())


def _state(text: str) -> str:
    """One of four: a node that drains, is down, reserved for maintenance or does not answer takes no job."""
    return _STATES.get(text.lower(), "out")


def _gpus(text: str) -> int:
    return sum(int(number) for number in _GPUS.findall(text))


def reservations(text: str) -> list[dict[str, str]]:
    """What ``scontrol --oneliner show reservation`` printed, the next first."""
    found = []
    for line in text.splitlines():
        said = dict(_WORD.findall(line))
        if "ReservationName" in said:
            flags = said.get("Flags", "").split(",")
            found.append(
                {
                    "name": said["ReservationName"],
                    "start": said.get("StartTime", "").replace("T", " "),
                    "end": said.get("EndTime", "").replace("T", " "),
                    "nodes": said.get("Nodes", "").replace("(null)", ""),
                    "what": "maintenance" if "MAINT" in flags else "reserved",
                }
            )
    return sorted(found, key=lambda each: each["start"])

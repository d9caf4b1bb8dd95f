"""Budgets of projects: what is granted, and what was used of it."""

from __future__ import annotations

import re

from families import Labels, gauge
from prometheus_client import Metric

GRANTED = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name,description")
USED = ("scontrol", "show", "assoc_mgr", "flags=qos")
_TERMS = re.compile(r"budget: (\S+) hours (?:a month|a quarter|a year|in all), then .+")
_COUNT = re.compile(r"([\w/:.-]+)=(?:N|\d+)\((\d+)\)")
_MINUTES = 60


class Budgets:
    """The QOS whose description says that they are budgets: first what is granted, then what was used."""

    def __init__(self) -> None:
        self._hours: dict[Labels, float] = {}

    def granted(self, text: str, _: float) -> list[Metric]:
        """The hours of each resource, by project."""
        found: dict[Labels, float] = {}
        for line in text.splitlines():
            name, _bar, description = line.partition("|")
            match = _TERMS.fullmatch(description.strip())
            for pair in match[1].split(",") if match else ():
                resource, _equals, amount = pair.partition("=")
                found[name, resource] = float(amount)
        self._hours = found
        meaning = "Hours of a resource that a project may use in each period."
        return [gauge("slurm_budget_granted_hours", meaning, ["project", "resource"], found)]

    def used(self, text: str, _: float) -> list[Metric]:
        """The hours that were used in this period, by project."""
        found: dict[Labels, float] = {}
        name = ""
        for line in map(str.strip, text.splitlines()):
            if line.startswith("QOS="):
                name = line.removeprefix("QOS=").split("(")[0]
            elif line.startswith("GrpTRESMins="):
                counts = _COUNT.findall(line.removeprefix("GrpTRESMins="))
                found |= {(name, resource): int(minutes) / _MINUTES for resource, minutes in counts}
        found = {key: hours for key, hours in found.items() if key in self._hours}
        meaning = "Hours of a resource that a project used in this period."
        return [gauge("slurm_budget_used_hours", meaning, ["project", "resource"], found)]

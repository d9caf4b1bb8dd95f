"""Which of several controllers leads, and which do not answer, by what they say of each other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deploy.run.ssh import Unanswered

LEADS, STANDS_BY, SILENT = "leads", "stands by", "silent"
"""How a controller stands, in the words of ``run/leading.py``."""


@dataclass(frozen=True)
class Leading:
    """How each of several controllers ``stands``, the first of the inventory first.

    ``since``: it has led at least since then, in seconds since 1970. ``unreached`` are by controller those
    that got no answer from it, and why; one that nobody got an answer from is silent.
    """

    stands: Mapping[str, str]
    since: float | None
    unreached: Mapping[str, Mapping[str, str]]

    @property
    def leaders(self) -> list[str]:
        """Who leads."""
        return leaders(self.stands)

    @property
    def first(self) -> str:
        """Who leads where all are there."""
        return next(iter(self.stands))

    def troubles(self, name: str) -> Iterator[tuple[str, str, str]]:
        """Of a controller what keeps it from taking over, or what is worse: reference, message, hint."""
        found = self.leaders
        if name in found and len(found) > 1:
            message = f"{' and '.join(found)} lead at once, each with a queue of its own"
            yield ("two-lead", message, "systemctl stop slurmctld   (on the one whose queue is given up)")
        elif name not in found and (apart := self._apart(name)):
            yield ("standby-silent", apart, f"scontrol ping; systemctl status slurmctld   (on {name})")

    def _apart(self, name: str) -> str:
        """Whom a controller that does not lead does not answer, or who leads and does not answer it."""
        if unreached := self.unreached.get(name):
            return (
                f"its slurmctld does not answer {' and '.join(unreached)}: {next(iter(unreached.values()))}"
            )
        lost = [leader for leader in self.leaders if name in self.unreached.get(leader, {})]
        return f"{lost[0]} leads, and does not answer it: {self.unreached[lost[0]][name]}" if lost else ""


def leaders(stands: Mapping[str, str]) -> list[str]:
    """The controllers that lead: one, or nobody that is known; two must never be."""
    return [name for name, how in stands.items() if how == LEADS]


def standing_troubles(stands: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Of controllers that are all to be there, the first one leading, who is not so, and how it is."""
    for name, how in stands.items():
        wanted = LEADS if name == next(iter(stands)) else STANDS_BY
        if how != wanted:
            is_so = "does not answer" if how == SILENT else how
            yield name, f"its slurmctld {is_so}, and should be one that {wanted}"


def leading(names: list[str], answers: Mapping[str, Any]) -> Leading | None:
    """What controllers of these names answered to ``stand``; None where there is one, or nobody answered."""
    views = {
        name: said
        for name in names
        if not isinstance(said := answers.get(name), Unanswered) and said and "trouble" not in said
    }
    if len(names) == 1 or not views:
        return None
    stands, unreached, since = {}, {}, None
    for name in names:
        seen = {viewer: view[name] for viewer, view in views.items() if name in view}
        how = {said["stands"] for said in seen.values()}
        stands[name] = next((word for word in (LEADS, STANDS_BY) if word in how), SILENT)
        unreached[name] = {viewer: said["why"] for viewer, said in seen.items() if said["stands"] == SILENT}
        if stands[name] == LEADS:
            since = next((float(at) for said in seen.values() if (at := said["since"])), None)
    return Leading(stands, since, unreached)

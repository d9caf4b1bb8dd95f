"""What Slurm says of nodes, in the lines of `scontrol --oneliner show node`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NODE = re.compile(r"^NodeName=(\S+) .*?\bState=(\S+)")
# Of what Slurm appends, who gave a reason and when comes first.
_REASON = re.compile(
    r" Reason=(.*?)"
    r"(?: \[([^\s\[\]@]+)@(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\].*| (?:Comment|Extra)=.*)?$"
)
_MARKS = "~#!%$@^-"
"""What Slurm puts behind a state, as in ``IDLE~`` of a node that is powered down."""


@dataclass(frozen=True)
class SlurmNode:
    """A node. ``state`` is as Slurm writes it, ``since`` a time of the controller's wall clock, or empty."""

    name: str
    state: str
    reason: str
    by: str
    since: str

    @property
    def flags(self) -> frozenset[str]:
        """The words of the state, as IDLE and DRAIN of ``IDLE+DRAIN``; the star of ``DOWN*`` is left out."""
        words = (word.rstrip(_MARKS) for word in re.split(r"[+*]+", self.state))
        return frozenset(word for word in words if word)


def parse_nodes(text: str) -> list[SlurmNode]:
    """The nodes in the output of scontrol; lines that are about no node are passed over."""
    return [node for line in text.splitlines() if (node := _parsed(line))]


def _parsed(line: str) -> SlurmNode | None:
    found = _NODE.match(line)
    if not found:
        return None
    reason = _REASON.search(line)
    why, by, since = reason.groups() if reason else ("", None, None)
    return SlurmNode(found[1], found[2], why.strip(), by or "", since or "")

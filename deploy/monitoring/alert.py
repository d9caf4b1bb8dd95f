"""What an alert is: when it fires, what it means, what to type, and the numbers that prove it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Series = Mapping[str, str]
"""Values by series, in promtool's notation: ``{'up{job="node"}': "1x30"}``, one value a minute."""


@dataclass(frozen=True)
class Alert:
    """One alert and its runbook.

    ``sick`` makes it fire once, with the labels ``expect``; ``well`` does not make it fire.
    """

    name: str
    severity: Literal["critical", "warning", "info"]
    summary: str
    expr: str
    minutes: int
    """How long it must hold."""
    means: str
    look: str
    commands: Sequence[str]
    sick: Series
    well: Series
    expect: Mapping[str, str]
    after: int = 30
    """When ``sick`` must have made it fire, in minutes."""
    repair: Literal["", "node", "gpu", "mount", "vendor"] = ""
    """What ``deploy node repair`` is to put right, where a node is not fit for jobs while it fires.

    The GPU of its label ``gpu``, the file system of its label ``mountpoint``, or the node; ``vendor``: deploy
    can do nothing. Where it is empty, a node takes jobs all the same.
    """


@dataclass(frozen=True)
class Chapter:
    """Alerts of one subject: a group of rules, a chapter of the runbooks."""

    name: str
    title: str
    alerts: Sequence[Alert]

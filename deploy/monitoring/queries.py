"""Which metrics a query names."""

import re
from collections.abc import Iterable

_STRING = re.compile(r'"[^"]*"')
_LABELS = re.compile(r"\{[^{}]*\}")
_RANGE = re.compile(r"\[[^\]]*\]|\boffset \d+[smhdw]")
_KEYS = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\([^()]*\)")
_WORD = re.compile(r"[a-zA-Z_:][\w:]*")
_CALL = re.compile(r"\b[a-z_]+(?=\s*\()")
_OPERATORS = frozenset({"and", "or", "unless", "bool", "by", "on", "group_left", "without"})


def metrics_in(expr: str) -> set[str]:
    """The names of metrics in a query."""
    text = expr
    for pattern in (_STRING, _RANGE, _LABELS, _KEYS, _CALL):
        text = pattern.sub(" ", text)
    return set(_WORD.findall(text)) - _OPERATORS


def filled(expr: str, variables: Iterable[str] = (), value: str = ".*") -> str:
    """The query as Grafana sends it when everything is chosen: ``value`` for the variables, five minutes."""
    text = expr.replace("$__rate_interval", "5m")
    for name in variables:
        text = text.replace(f"${name}", value)
    return text


UNLESS_POWERED_DOWN = (
    'unless on (instance) label_replace(slurm_node_powered_down == 1, "instance", "$1", "node", "(.+)")'
)
"""Behind what is asked of hosts: but for nodes that Slurm's power saving has switched off."""
POWERED_DOWN = 'slurm_node_powered_down{instance="ctl1",job="slurm",node="node1"}'
"""A series of one, for what proves alerts."""
LOCAL = 'fstype=~"ext[234]|xfs|btrfs|zfs"'
"""The file systems of a host's own disks."""

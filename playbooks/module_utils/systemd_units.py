"""What systemd says of units, in the output of `systemctl show`."""

from __future__ import annotations


def parse_units(text: str) -> list[dict[str, str]]:
    """The properties of each unit, in the order in which they were asked for."""
    return [
        dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n")
    ]


_UP = frozenset({"active", "reloading", "refreshing"})


def runs(properties: dict[str, str]) -> bool:
    """Whether a unit runs or is about to, by its ActiveState and SubState."""
    state = properties.get("ActiveState")
    return state in _UP or (state == "activating" and not died(properties))


def died(properties: dict[str, str]) -> bool:
    """Whether a unit waits to be started again; it is called activating then, often for ever."""
    return properties.get("SubState", "").startswith("auto-restart")

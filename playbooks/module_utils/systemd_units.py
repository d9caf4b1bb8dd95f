"""What systemd says of units, in the output of `systemctl show`."""

from __future__ import annotations


def parse_units(text: str) -> list[dict[str, str]]:
    """The properties of each unit, in the order in which they were asked for."""
    return [
        dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n")
    ]


_UP = frozenset({"active", "reloading", "refreshing"})


def runs(properties: dict[str, str]) -> bool:
    """Whether a unit runs or is about to, by its ActiveState and SubState.

    One that died and waits to be started again is called activating (auto-restart), often for ever.
    """
    state = properties.get("ActiveState")
    waits = properties.get("SubState", "").startswith("auto-restart")
    return state in _UP or (state == "activating" and not waits)

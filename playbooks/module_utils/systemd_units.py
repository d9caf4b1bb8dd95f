"""What systemd says of units, in the output of `systemctl show`."""

from __future__ import annotations


def parse_units(text: str) -> list[dict[str, str]]:
    """The properties of each unit, in the order in which they were asked for."""
    return [
        dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n")
    ]

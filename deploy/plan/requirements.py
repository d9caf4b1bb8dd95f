"""What a machine must be and have, as data; docs/support.md tells what of it is exercised."""

from collections.abc import Mapping
from dataclasses import dataclass

SYSTEMS: Mapping[str, tuple[str, ...]] = {"Debian": ("12", "13", "14"), "Ubuntu": ("22.04", "24.04")}
"""Distributions and versions that the roles have packages for; "12" stands for 12.1 and the like, too."""

CLOCK_SECONDS: Mapping[str, float] = {
    "warning_seconds": 1.0,
    # From here on an error, where nothing is going to set the clock.
    "error_seconds": 3.0,
    # What munge refuses, whatever sets the clock later.
    "munge_seconds": 300.0,
}


@dataclass(frozen=True)
class Room:
    """Free space in MiB that a directory's file system must have: in daily work, and to install packages."""

    mb: int
    mb_to_install: int


@dataclass(frozen=True)
class Memory:
    """Memory of a machine in MiB: below ``needed`` nothing is deployed, below ``recommended`` it is said."""

    needed: int
    recommended: int


EVERYWHERE: Mapping[str, Room] = {
    "/etc": Room(20, 50),
    "/usr": Room(20, 1000),
    "/var": Room(200, 1000),
    "/var/log": Room(100, 200),
}
NODE_SPOOL = Room(100, 200)
CONTROLLER_STATE = Room(200, 500)
DATABASE = Room(500, 1000)
DATABASE_DIRECTORY = "/var/lib/mysql"

MEMORY = Memory(needed=400, recommended=900)
CONTROLLER_MEMORY = Memory(needed=900, recommended=1900)

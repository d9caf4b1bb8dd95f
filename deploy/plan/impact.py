"""What a change does to what runs on the cluster."""

from enum import IntEnum


class Impact(IntEnum):
    """The worst that a change does, the harmless first."""

    NONE = 0
    RECONFIGURE = 1
    """A daemon reads its configuration again."""
    RESTART = 2
    """A daemon restarts; jobs go on."""
    DRAIN = 3
    """A node takes no new jobs until it is free."""
    REBOOT = 4
    """A node reboots."""
    KILLS_JOBS = 5
    """Jobs are lost."""

    @property
    def words(self) -> str:
        """As it is shown: lower case."""
        return self.name.lower().replace("_", " ")


def impact_of(kind: object) -> Impact:
    """The impact that a module names; starting what did not run disturbs nothing."""
    return Impact.__members__.get(str(kind).upper(), Impact.NONE)

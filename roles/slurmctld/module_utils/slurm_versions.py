"""Which version of Slurm its own commands say, of a controller and of its nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable

Version = tuple[int, ...]

ASK_FOR_VERSIONS = ["timeout", "15", "sinfo", "--noheader", "--all", "--format", "%v"]
"""Without its controller sinfo would try for minutes."""


def parse_version(text: str) -> Version:
    """`slurm-wlm 24.11.5` -> (24, 11, 5)."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text)
    return tuple(int(part) for part in found.groups()) if found else ()


def oldest(own: Version, told: Iterable[str]) -> Version:
    """The oldest of the controller's version and those that its nodes told it."""
    return min([own, *filter(None, map(parse_version, told))])


def is_before(version: Version, release: str) -> bool:
    """Whether a version is older than a release, ``24.11``."""
    return version < tuple(map(int, release.split(".")))

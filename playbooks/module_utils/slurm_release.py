"""What a version of a package of Slurm's says: Slurm's own version, and its release."""

from __future__ import annotations

import re


def upstream(version: str) -> str:
    """Slurm's own version in a package's: 1:24.11.5-4+deb13u1 -> 24.11.5."""
    return version.rpartition("-")[0].rpartition(":")[2]


def is_of(version: str, wanted: str) -> bool:
    """Whether a package's version is of a release, 26.05, or of one version of it, 26.05.5."""
    return re.match(re.escape(wanted) + r"(?![0-9])", version.rpartition(":")[2]) is not None


def is_before(version: str, release: str) -> bool:
    """Whether a version, a package's or Slurm's own, is older than a release; not where it says none."""
    found = re.match(r"(?:\d+:)?(\d+)\.(\d+)", version)
    return bool(found) and tuple(map(int, found.groups())) < tuple(map(int, release.split(".")))

"""The version of Slurm that a machine has, or would get."""

from __future__ import annotations

import re
from collections.abc import Callable

_PACKAGE = "slurm-client"


def slurm_version(run: Callable[..., str]) -> str:
    """The package version; empty when there is none to be had. ``run`` gives a command's output."""
    status = run("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev} ${Version}", _PACKAGE)
    if status.startswith("ii "):
        return status.split()[1]
    found = re.search(r"^\s+Candidate: (\S+)$", run("apt-cache", "policy", _PACKAGE), re.MULTILINE)
    return found[1] if found and found[1] != "(none)" else ""

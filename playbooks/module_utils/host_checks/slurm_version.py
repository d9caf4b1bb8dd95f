"""The version of Slurm that a machine has, or would get."""

from __future__ import annotations

import re
from collections.abc import Callable

_PACKAGE = "slurm-client"
_PACKAGES = (_PACKAGE, "slurm-smd-client")
"""Of the distribution, and by SchedMD's packaging."""


def slurm_version(run: Callable[..., str], built: str = "", *, has_other_source: bool = False) -> str:
    """The package version; empty when there is none to be had. ``run`` gives a command's output.

    ``built`` is the release that is built for this machine, where it is not the distribution's. A machine
    that gets another source, and with it the release of its cluster, is not asked what it has without that.
    """
    for package in _PACKAGES:
        status = run("dpkg-query", "--show", "--showformat", "${db:Status-Abbrev} ${Version}", package)
        if status.startswith("ii "):
            return status.split()[1]
    if built or has_other_source:
        return built
    found = re.search(r"^\s+Candidate: (\S+)$", run("apt-cache", "policy", _PACKAGE), re.MULTILINE)
    return found[1] if found and found[1] != "(none)" else ""

"""The version of Slurm that a machine has, or would get."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ansible.module_utils.host_checks.finding import error

_PACKAGE = "slurm-client"
_PACKAGES = (_PACKAGE, "slurm-smd-client")
"""Of the distribution, and by SchedMD's packaging."""

_BY_SLURM, _FIRST_WITH_KEY_SETS = "auth/slurm", (24, 5)
"""From here on auth/slurm takes several keys at once, of which a new one is made."""


def check_auth(version: str, auth_type: str) -> Iterator[dict[str, str]]:
    """A Slurm that cannot do without munge, though the site says so."""
    release = re.match(r"(?:\d+:)?(\d+)\.(\d+)", version)
    if auth_type != _BY_SLURM or not release or tuple(map(int, release.groups())) >= _FIRST_WITH_KEY_SETS:
        return
    yield error(
        "auth-slurm-too-old",
        f"its Slurm {version} has no {_BY_SLURM} with several keys, which begins with 24.05",
        "leave slurm_auth_type out: munge does the same",
    )


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

"""The version of Slurm that a machine has, or would get, and what that does not know."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ansible.module_utils.host_checks.finding import error
from ansible.module_utils.slurm_release import is_before

_PACKAGE = "slurm-client"
_PACKAGES = (_PACKAGE, "slurm-smd-client")
"""Of the distribution, and by SchedMD's packaging."""

FIRST_WITH_CGROUP_V2 = "22.05"
_UNIFIED = Path("sys/fs/cgroup/cgroup.controllers")
"""There where all control groups are of version 2."""


def check_needs(version: str, needs: Iterable[Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """What the site asks for and this Slurm does not know."""
    for need in needs:
        if is_before(version, need["since"]):
            yield error(
                "slurm-too-old",
                f"{need['setting']} takes Slurm {need['since']} or later, and this host has {version}: "
                f"{need['older']}",
                need["instead"],
            )


def check_control_groups(version: str, root: Path) -> Iterator[dict[str, str]]:
    """A slurmd that would not start, because it knows the control groups of former kernels alone."""
    if is_before(version, FIRST_WITH_CGROUP_V2) and (root / _UNIFIED).is_file():
        yield error(
            "slurm-needs-cgroup-v1",
            f"its control groups are of version 2, and slurmd of its Slurm {version} starts with version 1 "
            f"alone; {FIRST_WITH_CGROUP_V2} and later know both",
            "add systemd.unified_cgroup_hierarchy=0 to GRUB_CMDLINE_LINUX in /etc/default/grub, then: "
            "update-grub; reboot. Or have a later release of the system there",
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

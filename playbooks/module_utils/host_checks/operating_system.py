"""Which system the machine runs, and whether the roles have packages for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.host_checks.capacity import memory_mb
from ansible.module_utils.host_checks.finding import error

# A release of Debian that is still made says no number.
_UNRELEASED = {"forky/sid": "14"}
_SUPPORT = "see docs/support.md; install one of these systems, or take the host out of the inventory"


def facts(root: Path, distribution: str | None, version: str | None) -> dict[str, Any]:
    """The facts that roles read, as Ansible's own on a Debian or Ubuntu with systemd.

    Ansible's collectors of facts come as one package of eighty modules, which every host would have to load.
    """
    name, number = distribution or "an unknown system", _UNRELEASED.get(version or "", version or "")
    is_systemd = (root / "run/systemd/system").is_dir()
    return {
        "architecture": os.uname().machine,
        "distribution": name,
        "distribution_version": number,
        "distribution_major_version": number.partition(".")[0],
        "memtotal_mb": memory_mb((root / "proc/meminfo").read_text(encoding="utf-8")),
        "pkg_mgr": "apt" if (root / "usr/bin/apt-get").exists() else "unknown",
        "service_mgr": "systemd"
        if is_systemd
        else (root / "proc/1/comm").read_text(encoding="utf-8").strip(),
    }


def check_system(
    facts: Mapping[str, Any], supported: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, str]]:
    """A distribution or version that is not supported; a machine that systemd does not run."""
    name, version = facts["distribution"], facts["distribution_version"]
    versions = supported.get(name, [])
    if not any(version == known or version.startswith(f"{known}.") for known in versions):
        known = ", ".join(f"{system} {'/'.join(numbers)}" for system, numbers in supported.items())
        yield error(
            "unsupported-system", f"{name} {version} is not supported: supported are {known}", _SUPPORT
        )
    if facts["service_mgr"] != "systemd":
        yield error(
            "no-systemd",
            f"services are run by {facts['service_mgr']}, not by systemd",
            "boot the machine with systemd as its process 1",
        )


_CONFINED = re.compile(r"^(/usr/sbin/)?rsyslogd \(enforce\)$", re.MULTILINE)
_PROFILE = "/etc/apparmor.d/usr.sbin.rsyslogd"


def check_confined_logs(profiles: str) -> Iterator[dict[str, str]]:
    """An rsyslogd that AppArmor keeps from its work for the roles; ``profiles`` as the kernel lists them."""
    if _CONFINED.search(profiles):
        yield error(
            "rsyslog-confined",
            "AppArmor confines rsyslogd there, as Ubuntu 24.04 has it: it could not read what central "
            "logs need",
            "leave [slurm-log] out, or have rsyslogd unconfined there, as on other releases: "
            f"ln -s {_PROFILE} /etc/apparmor.d/disable/; apparmor_parser --remove {_PROFILE}",
        )

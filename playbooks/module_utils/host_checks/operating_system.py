"""Whether the machine runs a system that the roles have packages for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible.module_utils.host_checks.finding import error

_SUPPORT = "see docs/support.md; install one of these systems, or take the host out of the inventory"


def check_system(
    facts: Mapping[str, Any], supported: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, str]]:
    """A distribution or version that is not supported; a machine that systemd does not run."""
    name, version = str(facts["distribution"]), str(facts.get("distribution_version", ""))
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

"""Packages that start nothing: their daemons wait until their configuration is in place."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

POLICY = Path("/usr/sbin/policy-rc.d")
_REFUSAL = """\
#!/bin/sh
# Made by deploy while it installs packages; safe to remove when no installation runs.
exit 101
"""


def candidates(policy: str) -> set[str]:
    """Names of the packages that the archive has, from the output of ``apt-cache policy NAME...``."""
    blocks = re.findall(r"^(\S+):\n\s+Installed: .*\n\s+Candidate: (.*)$", policy, re.MULTILINE)
    return {name.split(":", 1)[0] for name, version in blocks if version != "(none)"}


def wanted(packages: Iterable[str], present: Iterable[str]) -> list[str]:
    """What is not there yet, each once, in order."""
    there = set(present)
    return [name for name in dict.fromkeys(packages) if name not in there]


@contextmanager
def no_daemon_starts(policy: Path = POLICY) -> Iterator[dict[str, str]]:
    """While it lasts no package starts its daemon; an admin's own policy stays and holds.

    Gives the environment for the package manager: without an admin's policy, packages need not talk to
    systemd, which each of them would have reload all units (SYSTEMD_OFFLINE, systemd's docs/ENVIRONMENT.md).
    """
    forget_left_behind(policy)
    if policy.exists():
        yield {}
        return
    policy.write_text(_REFUSAL, encoding="ascii")
    policy.chmod(0o755)
    try:
        yield {"SYSTEMD_OFFLINE": "1"}
    finally:
        policy.unlink(missing_ok=True)


def forget_left_behind(policy: Path = POLICY) -> bool:
    """Removes the policy of a run that was killed; returns whether there was one."""
    if not policy.is_file() or policy.read_text(encoding="utf-8", errors="replace") != _REFUSAL:
        return False
    policy.unlink()
    return True

"""Secrets that a host has already, and that the site does not know: a run would replace them in silence."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ansible.module_utils.host_checks.finding import error
from ansible.module_utils.host_checks.other_slurm import memberships


@dataclass(frozen=True)
class _Place:
    """Where a role keeps a secret: a file, a setting in one, or of a set of keys the one that signs.

    A package may bring a random one of its own. ``users`` are units without which nobody uses that yet,
    unless a slurm.conf says that the host is of a cluster: its services may be stopped for a while.
    """

    path: str
    setting: str = ""
    users: tuple[str, ...] = ()
    is_key_set: bool = False


PLACES: Mapping[str, _Place] = {
    "grafana_admin_password": _Place("/etc/grafana/admin_password"),
    "munge_key": _Place(
        "/etc/munge/munge.key", users=("slurmctld", "slurmdbd", "slurmd", "sackd", "slurmrestd")
    ),
    "slurm_auth_key": _Place("/etc/slurm/slurm.jwks", is_key_set=True),
    "slurm_tokens_key": _Place("/etc/slurm/jwt_hs256.key"),
    "slurmdbd_database_password": _Place("/etc/slurm/slurmdbd.conf", setting="StoragePass"),
}
"""By the variable that holds it."""


def check_secrets(
    root: Path, known: Mapping[str, object], runs_one_of: Callable[[tuple[str, ...]], bool]
) -> Iterator[dict[str, str]]:
    """Those that differ from what the site knows; never shows one, nor a hash of it."""
    for name, value in known.items():
        place = PLACES[name]
        if _in_use(root, place, runs_one_of) not in {None, str(value).encode()}:
            yield error(
                "unknown-secret",
                f"{place.path} holds a {name} that this site does not know; a run would replace it",
                "get the secrets.yml of whoever deployed this cluster; to give all hosts new secrets: "
                "deploy cluster --new-secrets",
            )


def secrets_in_use(root: Path, runs_one_of: Callable[[tuple[str, ...]], bool]) -> Iterator[str]:
    """The variables whose secrets a host has, whatever they are."""
    return (name for name, place in PLACES.items() if _in_use(root, place, runs_one_of) is not None)


def _in_use(root: Path, place: _Place, runs_one_of: Callable[[tuple[str, ...]], bool]) -> bytes | None:
    """The secret in its place; None where there is none, or one that nobody uses yet."""
    found = _found(root / place.path.lstrip("/"), place)
    if found is None or not place.users or runs_one_of(place.users) or any(memberships(root)):
        return found
    return None


def _found(path: Path, place: _Place) -> bytes | None:
    """The secret in a file; None where there is none."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    if place.is_key_set:
        return _signing(content)
    if not place.setting:
        return content
    pattern = rb"^\s*" + place.setting.encode() + rb"\s*=\s*(\S+)"
    line = re.search(pattern, content, re.MULTILINE | re.IGNORECASE)
    return line[1] if line else None


def _signing(content: bytes) -> bytes | None:
    """The key of slurm.jwks that is signed with; None where Slurm could not read it either."""
    try:
        keys = json.loads(content)["keys"]
        current = next((key for key in keys if key.get("use") == "default"), keys[0])
        return base64.b64decode(current["k"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return None

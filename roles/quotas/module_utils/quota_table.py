"""Quotas as values: what is declared, what repquota reports, and the commands between them."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_UNITS = {"K": 1, "M": 1024, "G": 1024**2, "T": 1024**3}
_KINDS = {"user": "-u", "group": "-g"}


@dataclass(frozen=True)
class Limits:
    """Limits of a name: KiB (from where a warning counts, and at most) and files. 0 is none."""

    soft: int = 0
    hard: int = 0
    files: int = 0


def kibibytes(text: str) -> int:
    """500G as KiB. Raises ValueError for what is no size."""
    digits, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "K")
    return int(digits) * _UNITS[unit]


def limits_of(entry: Mapping[str, Any]) -> Limits:
    """The limits that an entry declares."""
    return Limits(
        kibibytes(entry.get("space_warning") or "0"),
        kibibytes(entry.get("space") or "0"),
        int(entry.get("files") or 0),
    )


def wanted(filesystem: Mapping[str, Any], accounts: Sequence[str]) -> dict[tuple[str, str], Limits]:
    """The declared limits of a file system by kind and name."""
    each = filesystem.get("each_user")
    found = {("user", name): limits_of(each) for name in accounts} if each else {}
    for kind in _KINDS:
        found |= {(kind, entry["name"]): limits_of(entry) for entry in filesystem.get(f"{kind}s") or []}
    return found


ByPath = Mapping[str, Mapping[tuple[str, str], Limits]]
"""Limits by file system, then by kind and name."""


def with_former(
    declared: ByPath, known: Mapping[str, Any], kept: ByPath | None = None
) -> dict[str, dict[tuple[str, str], Limits]]:
    """What is declared, and what is kept of, or no limits, for whom this role gave some before."""
    keeps = kept or {}
    return {
        path: {
            **{
                (kind, name): keeps.get(path, {}).get((kind, name), Limits())
                for kind, name in known.get(path, [])
            },
            **limits,
        }
        for path, limits in declared.items()
    }


def of_former_accounts(
    filesystems: Sequence[Mapping[str, Any]], known: Mapping[str, Any], accounts: Container[str]
) -> ByPath:
    """The limits of each user for those who were declared, and whose account the host has still, closed."""
    return {
        filesystem["path"]: {
            (kind, name): limits_of(filesystem["each_user"])
            for kind, name in known.get(filesystem["path"], [])
            if kind == "user" and name in accounts
        }
        for filesystem in filesystems
        if filesystem.get("each_user")
    }


def together(known: Mapping[str, Any], declared: ByPath) -> dict[str, list[list[str]]]:
    """Who has limits or will, as it is remembered; file systems that are declared no more stay known."""
    names = {path: {tuple(key) for key in keys} for path, keys in known.items()}
    for path, limits in declared.items():
        names[path] = names.get(path, set()) | {*limits}
    return {path: sorted(map(list, keys)) for path, keys in names.items()}


def how_to_turn_on(path: str) -> str:
    """What an admin does, once, for a file system that keeps its quotas itself.

    Its mount turns them on, with their limits (ext4_enable_quotas in the kernel; xfs(5)). For the same
    options in /etc/fstab systemd starts quotaon@.service (257) or quotaon.service (252), which fail where
    quotas are on already.
    """
    return (
        "Turn them on with the file system unmounted. ext4: tune2fs -O quota -Q usrquota,grpquota DEVICE; "
        "XFS: nothing. Then add usrquota,grpquota to its options in /etc/fstab, have systemd not turn on "
        "once more what the mount turns on (systemctl mask quotaon.service $(systemd-escape --path "
        f"--template=quotaon@.service {shlex.quote(path)})), and mount it again"
    )


def report_command(kind: str, path: str) -> list[str]:
    """What reports all limits of a file system, those of people of a directory and without files, too."""
    return ["repquota", _KINDS[kind], "--verbose", "--no-cache", "--output=csv", "--raw-grace", path]


def reported(kind: str, text: str) -> dict[tuple[str, str], Limits]:
    """The limits in a report."""
    rows = csv.DictReader(io.StringIO(text))
    return {
        (kind, row["User" if "User" in row else "Group"]): Limits(
            int(row["BlockSoftLimit"]), int(row["BlockHardLimit"]), int(row["FileHardLimit"])
        )
        for row in rows
    }


def change_command(kind: str, name: str, limits: Limits, path: str) -> list[str]:
    """What sets the limits of a name."""
    return [
        "setquota",
        _KINDS[kind],
        name,
        *(str(number) for number in (limits.soft, limits.hard, 0, limits.files)),
        path,
    ]

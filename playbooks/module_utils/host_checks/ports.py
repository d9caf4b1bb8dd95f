"""Whether the ports of the cluster's daemons are free, or theirs already."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.host_checks.finding import error

_WAITING = {"tcp": "0A", "udp": "07"}
"""The kernel's number for a socket that waits for whoever comes."""


def check_ports(wanted: Sequence[Mapping[str, Any]], proc: Path = Path("/proc")) -> Iterator[dict[str, str]]:
    """Ports that a program holds which is not the daemon they are meant for."""
    taken = _waiting_sockets(proc)
    for want in wanted:
        inodes = taken.get((want["protocol"], int(want["port"])), set())
        foreign = inodes - _sockets_of(proc, want["programs"]) if inodes else inodes
        if foreign:
            yield _finding(want, _holder(proc, foreign))


def _finding(want: Mapping[str, Any], holder: tuple[str, str] | None) -> dict[str, str]:
    port = f"{want['port']}/{want['protocol']}"
    who = f"{holder[1]} (process {holder[0]})" if holder else "a program in another container"
    stop = f"systemctl status {holder[0]}" if holder else "see the port mappings of your containers"
    return error(
        "port-taken",
        f"port {port}, which {want['daemon']} needs, is taken by {who}",
        f"stop that program ({stop})" + (f", or set {want['setting']}" if want.get("setting") else ""),
    )


def _waiting_sockets(proc: Path) -> dict[tuple[str, int], set[str]]:
    """The inodes of the sockets behind every protocol and port."""
    found: dict[tuple[str, int], set[str]] = {}
    for protocol, state in _WAITING.items():
        for name in (protocol, f"{protocol}6"):
            for line in _lines(proc / "net" / name)[1:]:
                fields = line.split()
                if fields[3] == state:
                    port = int(fields[1].rpartition(":")[2], 16)
                    found.setdefault((protocol, port), set()).add(fields[9])
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return []  # A kernel without IPv6.


def _sockets_of(proc: Path, programs: Sequence[str]) -> set[str]:
    """The inodes of all sockets of the processes with these names."""
    return {
        inode for pid, name in _processes(proc) if name in programs for inode in _sockets(proc / pid / "fd")
    }


def _holder(proc: Path, inodes: set[str]) -> tuple[str, str] | None:
    """Process id and name of who has one of the sockets; None when it is not to be seen from here."""
    held = ((pid, name) for pid, name in _processes(proc) if inodes & _sockets(proc / pid / "fd"))
    return next(held, None)


def _processes(proc: Path) -> Iterator[tuple[str, str]]:
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                name = (entry / "comm").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue  # It ended meanwhile.
            yield entry.name, name.strip()


def _sockets(descriptors: Path) -> set[str]:
    found = set()
    try:
        for entry in descriptors.iterdir():
            target = re.match(r"socket:\[(\d+)\]", str(entry.readlink()))
            if target:
                found.add(target.group(1))
    except OSError:
        pass  # It ended meanwhile.
    return found

"""How a run is connected to its host, so that no role cuts it off: as whom, from where, to which port."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

_NOT_SET = 0xFFFFFFFF


def connected_as(environment: Mapping[str, str] = os.environ, proc: Path = Path("/proc")) -> str:
    """The account that this run logged in with, by sudo or the audit system; root where neither knows."""
    if name := environment.get("SUDO_USER"):
        return name
    try:
        number = int((proc / "self" / "loginuid").read_text(encoding="utf-8"))
        return pwd.getpwuid(number).pw_name if number != _NOT_SET else "root"
    except (KeyError, OSError, ValueError):
        return "root"


def connection(process: int, proc: Path = Path("/proc")) -> tuple[str, int] | None:
    """A process's ssh connection: the client's address and the server's port; None without one."""
    while process > 1:
        try:
            environment = (proc / str(process) / "environ").read_bytes().split(b"\0")
            stat = (proc / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        for entry in environment:
            if entry.startswith(b"SSH_CONNECTION="):
                client, _, _, port = entry.decode().partition("=")[2].split()
                return client, int(port)
        process = int(stat.rpartition(")")[2].split()[1])
    return None

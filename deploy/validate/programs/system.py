"""What a host's kernel does for users: which one it is, control groups, quotas, and what NFS lets root do.

Asked as root; changes nothing. ``look`` is called with a dictionary, and returns one.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import json
import os
import pwd
import re
import struct
import subprocess
import sys
from contextlib import suppress
from typing import Any

_SECONDS = 10
_SECONDS_TO_END = 0.5
_MOUNTS = "/proc/self/mounts"
_CONTROL_GROUPS = "/sys/fs/cgroup"
_KERNEL_LINE = "/proc/cmdline"
_PLUGINS = "/usr/lib/*/slurm*/cgroup_v[0-9].so"
_OF_CONTROL_GROUPS = re.compile(r"\S*cgroup\S*", re.IGNORECASE)
_KERNELS = "/boot/vmlinuz-*"
_OS_RELEASE = "/etc/os-release"
_EXPORTS = "/var/lib/nfs/etab"  # what exportfs has told the kernel: exportfs(8)
_QUOTA_SERVER = "quotarpc.service"
_Q_XGETQSTAT = 0x5805
_NO_QUOTAS = (errno.ENOSYS, errno.ESRCH)
_MOST_BYTES = 1024
_FIRST_GROUP = 1 << 30
_LOOK_INTO = """
import json, os, sys
mode = os.stat(sys.argv[1]).st_mode & 0o7777
try:
    os.listdir(sys.argv[1])
    seen = True
except PermissionError:
    seen = False
print(json.dumps({"mode": mode, "seen": seen}))
"""
_ENVIRONMENT = {
    **os.environ,
    "LC_ALL": "C",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}


def look(arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything once."""
    return {
        "kernel": kernel(),
        "control_groups": control_groups(),
        "quotas": {path: quotas(path) for path in arguments["quotas"]},
        "serves_quotas": is_active(_QUOTA_SERVER) if arguments["serves_quotas"] else None,
        "root_sees": seen_by_root(arguments["user"]),
        "open_exports": open_exports() if arguments["exports"] else {},
    }


def kernel() -> dict[str, Any]:
    """The kernel that runs, those that are installed, and the distribution with its release."""
    try:
        with open(_OS_RELEASE, encoding="utf-8", errors="replace") as file:
            said = dict(line.strip().split("=", 1) for line in file if "=" in line)
    except OSError:
        said = {}
    system = " ".join(said.get(key, "").strip("\"'") for key in ("ID", "VERSION_ID")).strip()
    installed = sorted(path.partition("vmlinuz-")[2] for path in glob.glob(_KERNELS))
    return {"system": system, "running": os.uname().release, "installed": installed}


def control_groups() -> dict[str, Any]:
    """Their version, the controllers of the second, what the kernel line says, which versions Slurm knows."""
    with open(_MOUNTS, encoding="utf-8", errors="replace") as file:
        kinds = [line.split()[2] for line in file if line.split()[1] == _CONTROL_GROUPS]
    controllers: list[str] = []
    with suppress(OSError), open(f"{_CONTROL_GROUPS}/cgroup.controllers", encoding="ascii") as file:
        controllers = file.read().split()
    with open(_KERNEL_LINE, encoding="utf-8", errors="replace") as file:
        words = _OF_CONTROL_GROUPS.findall(file.read())
    return {
        "version": 2 if kinds[-1:] == ["cgroup2"] else 1,
        "controllers": controllers,
        "words": words,
        "known": sorted({int(path[-len("1.so")]) for path in glob.glob(_PLUGINS)}),
    }


def quotas(path: str) -> dict[str, str]:
    """Of a file system, by user and group: ``enforced``, ``accounting`` or ``off``; else ``why``.

    The kernel is asked: of an ext4 that counts and no more, quotaon 4.09 says that quotas are on.
    """
    with open(_MOUNTS, encoding="utf-8", errors="replace") as file:
        devices = [line.split()[0] for line in file if line.split()[1] == path.replace(" ", r"\040")]
    if not devices:
        return {"why": "no file system is mounted there"}
    flags, number = quota_flags(devices[-1])
    if number in _NO_QUOTAS:
        flags = 0
    elif number:
        return {"why": f"{devices[-1]}: {os.strerror(number)}"}
    return {
        kind: "enforced" if flags & 2 << shift else "accounting" if flags & 1 << shift else "off"
        for kind, shift in (("user", 0), ("group", 2))
    }


def quota_flags(device: str) -> tuple[int, int]:
    """The flags of a device's fs_quota_stat (linux/dqblk_xfs.h), and the number of the error."""
    answer = ctypes.create_string_buffer(_MOST_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.quotactl(_Q_XGETQSTAT << 8, os.fsencode(device), 0, answer)
    return struct.unpack_from("=H", answer, 2)[0], ctypes.get_errno() if failed else 0


def is_active(unit: str) -> bool:
    """Whether systemd has a unit running."""
    with suppress(OSError, subprocess.TimeoutExpired):
        command = ("systemctl", "is-active", "--quiet", unit)
        return subprocess.run(command, env=_ENVIRONMENT, timeout=_SECONDS, check=False).returncode == 0
    return False


def seen_by_root(user: str | None) -> dict[str, Any] | None:
    """Whether root here sees into a user's home, with the home's mode; null where that cannot be said.

    A file system that does not answer holds up the process that asks, which is not waited for.
    """
    try:
        home = pwd.getpwnam(user).pw_dir if user else None
    except KeyError:
        home = None
    if home is None:
        return None
    process = subprocess.Popen(
        (sys.executable or "/usr/bin/python3", "-I", "-c", _LOOK_INTO, home),
        env=_ENVIRONMENT,
        # The kernel remembers what the server let somebody do, by user and groups, for as long as it likes.
        extra_groups=[_FIRST_GROUP + int.from_bytes(os.urandom(3), "big")] if os.geteuid() == 0 else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
    )
    try:
        said, _ = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_SECONDS_TO_END)
        return None
    return {"home": home, **json.loads(said)} if process.returncode == 0 else None


def open_exports() -> dict[str, list[str]]:
    """By exported directory, the clients whose root is root here; one where nobody's is is not in it."""
    try:
        with open(_EXPORTS, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return {}
    found: dict[str, list[str]] = {}
    for line in lines:
        path, _, rest = line.partition("\t")
        client, _, options = rest.partition("(")
        words = set(options.rstrip(")").split(","))
        if "no_root_squash" in words and "all_squash" not in words:
            found.setdefault(re.sub(r"\\040", " ", path), []).append(client.strip())
    return found

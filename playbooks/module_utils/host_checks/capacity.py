"""Whether there is room for what will be written, and memory for what will run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.host_checks.finding import error, warning

_MIB = 1024 * 1024
_FEWEST_INODES = 1000


def check_disks(
    needs: Sequence[Mapping[str, Any]],
    statvfs: Callable[[Path], os.statvfs_result] = os.statvfs,
    device: Callable[[Path], int] = lambda path: path.stat().st_dev,
) -> Iterator[dict[str, str]]:
    """File systems that are full or read-only, each said once, with the path that needs the most of it."""
    most: dict[int, Mapping[str, Any]] = {}
    for need in needs:
        key = device(_existing(Path(need["path"])))
        if key not in most or need["mb"] > most[key]["mb"]:
            most[key] = need
    for need in most.values():
        yield from _check_disk(need["path"], int(need["mb"]), statvfs(_existing(Path(need["path"]))))


def _check_disk(path: str, mb: int, state: os.statvfs_result) -> Iterator[dict[str, str]]:
    free = state.f_bavail * state.f_frsize // _MIB
    look = f"on the machine: df -h {path}; du -xh --max-depth=2 {path} | sort -h | tail"
    if state.f_flag & os.ST_RDONLY:
        yield error(
            "disk-read-only",
            f"the file system of {path} is mounted read-only",
            f"see why: dmesg --level=err; then: mount -o remount,rw $(findmnt -no TARGET --target {path})",
        )
    elif free < mb:
        yield error("disk-full", f"the file system of {path} has {free} MiB free, {mb} are needed", look)
    # File systems without a fixed number of inodes say that they have none.
    elif state.f_files and state.f_favail < _FEWEST_INODES:
        yield error(
            "disk-out-of-inodes",
            f"the file system of {path} has room for {state.f_favail} more files only",
            f"on the machine: df -i {path}; du --inodes -x --max-depth=2 {path} | sort -n | tail",
        )


def answers(path: str) -> bool:
    """Asks the file system of a path for its room, and comes back when it answers."""
    os.statvfs(_existing(Path(path)))
    return True


def no_answer(path: str) -> dict[str, str]:
    """A place that deploy or Slurm will write to, on a file system that does not answer."""
    return error(
        "disk-silent",
        f"the file system of {path} does not answer",
        f"on the machine: findmnt --target {path}; see whether its server can be reached",
    )


def check_scratch(
    paths: Sequence[str], device: Callable[[Path], int] = lambda path: path.stat().st_dev
) -> Iterator[dict[str, str]]:
    """Places to which jobs write that are a part of what the system itself lives on."""
    root = device(Path("/")) if paths else 0
    if found := [path for path in paths if device(_existing(Path(path))) == root]:
        yield warning(
            "scratch-on-root",
            f"jobs can fill the root file system: {', '.join(found)} {'is' if len(found) == 1 else 'are'} "
            "on it",
            "put it on a file system of its own (scratch_directory; what scratch_private_directories names "
            "lies there, too), limit what each user may take of / (quotas_filesystems), or set "
            "scratch_may_fill_root: true",
        )


def _existing(path: Path) -> Path:
    """The path itself, or the nearest directory above that is there."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def memory_mb(meminfo: str) -> int:
    """MiB of memory, from the text of /proc/meminfo."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(found.group(1)) // 1024 if found else 0


def check_memory(available: int, needed: int, recommended: int) -> Iterator[dict[str, str]]:
    """Less memory than the daemons of this host need."""
    hint = "give the machine more memory, or its part in the cluster to another"
    if available < needed:
        yield error("memory-too-small", f"{available} MiB of memory; this host needs {needed}", hint)
    elif available < recommended:
        message = f"{available} MiB of memory; {recommended} are recommended for what this host does"
        yield warning("memory-small", message, hint)

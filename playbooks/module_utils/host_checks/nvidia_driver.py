"""Whether the NVIDIA driver that runs is the one that is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from ansible.module_utils.host_checks.finding import error

_VERSION = re.compile(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)")


def running_version(root: Path) -> str:
    """The version of the driver in the kernel; empty when none is loaded."""
    try:
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = _VERSION.search(text)
    return found.group(1) if found else ""


def module_version(run: Callable[..., str], kernel: str) -> str:
    """The version of the modules on disk for a kernel; empty when there are none.

    Debian's packages keep them by other names, of which modprobe's settings know. ``run`` answers with the
    output of a command, empty when it fails.
    """
    shown = run("modprobe", "--set-version", kernel, "--show-depends", "nvidia")
    renamed = re.search(r"^install .*modprobe -i (\S+)", shown, re.MULTILINE)
    return run("modinfo", "-k", kernel, "--field", "version", renamed[1] if renamed else "nvidia").strip()


def library_files(root: Path) -> list[Path]:
    """The files of the driver's library; their names end in its version."""
    # By Debian's packages and Ubuntu's, by NVIDIA's installer, and in images of machines that are rented.
    below = ("usr/lib/*", "usr/lib/*/nvidia/current", "usr/lib64", "usr/lib", "usr/local/nvidia/lib64")
    places = (path for place in below for path in root.glob(f"{place}/libnvidia-ml.so.*.*"))
    return sorted(path for path in places if not path.is_symlink())


def library_version(root: Path) -> str:
    """The version of the driver's library, which has to be that of the kernel module; empty when unknown."""
    found = {path.name.partition(".so.")[2] for path in library_files(root)}
    return found.pop() if len(found) == 1 else ""


def is_managed(root: Path, *, is_wanted: bool) -> bool:
    """Whether this run brings the driver in step: it is to be deploy's, and no other one is there."""
    is_ours = (root / "etc/apt/preferences.d/deploy-nvidia-driver").exists()
    return is_wanted and (is_ours or not library_files(root))


def check_driver(running: str, library: str, module: str, kernel: str) -> Iterator[dict[str, str]]:
    """A driver that was upgraded under a running kernel, or is not there for that kernel.

    ``module`` is the version on disk for the running kernel, empty when there is none.
    """
    if not running:
        return
    if library and library != running:
        yield error(
            "gpu-driver-not-in-step",
            f"the kernel runs the NVIDIA driver {running}, and its library is {library}: nothing can use the "
            f"GPUs",
            "drain the node, then reboot it",
        )
    elif module and module != running:
        yield error(
            "gpu-driver-not-in-step",
            f"the kernel runs the NVIDIA driver {running}, and {module} is installed for kernel {kernel}",
            "drain the node, then reboot it",
        )

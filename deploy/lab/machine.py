"""The machine the lab runs on: what it has, what it lacks, what containers may use of it."""

import os
import resource
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deploy.errors import error

PACKAGES = (
    "podman",
    "runc",
    "netavark",
    "iptables",
    "mmdebstrap",
    "e2fsprogs",
    "uidmap",
    "iproute2",
    "openssh-client",
)
INSTANCES_PER_MACHINE = 7
"""inotify instances that a booted systemd container holds: 128 carry about 18 of them."""

_UNLIMITED_FILES = 1048576


@dataclass(frozen=True)
class Machine:
    """What decides how containers are started here."""

    cgroup_v1: bool
    runtime: str
    open_files: int
    processes: int


def choose_runtime(*, cgroup_v1: bool, has_crun: bool) -> str:
    """The container runtime: crun refuses the hybrid and legacy cgroup layouts, runc takes all."""
    return "crun" if has_crun and not cgroup_v1 else "runc"


def is_cgroup_v1(root: Path = Path("/sys/fs/cgroup")) -> bool:
    """Whether controllers still live in the old (legacy or hybrid) layout."""
    return not (root / "cgroup.controllers").exists()


def _hard_limit(kind: int, unlimited: int) -> int:
    hard = resource.getrlimit(kind)[1]
    # Above the hard limit a container does not start at all where CAP_SYS_RESOURCE is missing.
    return unlimited if hard == resource.RLIM_INFINITY else min(hard, unlimited)


def inspect_machine() -> Machine:
    """Look at this machine; complains when it cannot carry a lab."""
    if os.geteuid() != 0:
        raise error(
            "lab-needs-root",
            "the lab boots whole systems, which only root may do",
            hint="type the same with sudo in front",
        )
    require_tools(("podman", "ip", "ssh", "ssh-keygen"))
    cgroup_v1 = is_cgroup_v1()
    runtime = choose_runtime(cgroup_v1=cgroup_v1, has_crun=shutil.which("crun") is not None)
    require_tools((runtime,))
    return Machine(
        cgroup_v1=cgroup_v1,
        runtime=runtime,
        open_files=_hard_limit(resource.RLIMIT_NOFILE, _UNLIMITED_FILES),
        # Podman lowers its own limit to the kernel's highest process id; containers cannot exceed it.
        processes=_hard_limit(resource.RLIMIT_NPROC, int(Path("/proc/sys/kernel/pid_max").read_text())),
    )


def require_tools(names: Iterable[str]) -> None:
    """Complain about every command that is not installed, with the line that installs them."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        raise error(
            "lab-tools-missing",
            f"not installed on this machine: {', '.join(missing)}",
            hint=f"apt-get install --no-install-recommends {' '.join(PACKAGES)}",
        )


def require_room(machines: int, setting: Path = Path("/proc/sys/fs/inotify/max_user_instances")) -> None:
    """Complain when this many running machines would exhaust the kernel's inotify instances."""
    allowed, needed = int(setting.read_text()), machines * INSTANCES_PER_MACHINE
    if allowed < needed:
        wanted = max(1024, 1 << (needed - 1).bit_length())
        raise error(
            "lab-no-room",
            f"{machines} machines would run at once, but this kernel allows {allowed} inotify instances,"
            f" enough for {allowed // INSTANCES_PER_MACHINE}",
            hint=f"sysctl -w fs.inotify.max_user_instances={wanted}",
        )

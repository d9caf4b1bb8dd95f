"""Machines with a kernel of their own: user-mode Linux, a kernel that is a program and needs no KVM.

Each runs in a container, whose network is the machine's and whose file system keeps what its disk has more
than the image. Podman stops and starts it as it does others: to kill it is to pull the plug.
"""

import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.errors import error
from deploy.lab.addresses import mac_address
from deploy.lab.bridge import keep_address
from deploy.lab.directory import LabDirectory
from deploy.lab.disk import (
    DISK,
    DISK_LABEL,
    FILES,
    KERNEL_IMAGE,
    START,
    ensure_disk,
    kernel_line_entry,
    start_entry,
)
from deploy.lab.machine import Machine, require_tools
from deploy.lab.machines.kind import NewHost
from deploy.lab.podman import podman
from deploy.lab.state import Lab
from deploy.lab.tarball import Entry, pack

MEMORY_MB = 1024
_ARCHITECTURE = "x86_64"
_BESIDE_MEMORY_MB = 256
_MEMORY = "/memory"


@dataclass(frozen=True)
class UserMode:
    """See ``Kind``."""

    name: str = "uml"
    has_own_kernel: bool = True
    shared: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises DeployError ``lab-no-tun``, ``lab-architecture``, ``lab-tools-missing``."""
        if platform.machine() != _ARCHITECTURE:
            raise error(
                "lab-architecture",
                f"Debian has user-mode Linux for {_ARCHITECTURE} alone, and this is {platform.machine()}",
                hint="leave --machines away: containers run here",
            )
        if not Path("/dev/net/tun").exists():
            raise error(
                "lab-no-tun",
                "the network of these machines needs /dev/net/tun, and it is not there",
                hint="modprobe tun, or leave --machines away: containers need none",
            )
        require_tools(("mmdebstrap", "mke2fs"))

    def require_room(self, more: int, meminfo: Path = Path("/proc/meminfo")) -> None:
        """Each may use all the memory that it has. Raises DeployError ``lab-no-memory``."""
        lines = (line.split() for line in meminfo.read_text().splitlines())
        available = next(int(words[1]) for words in lines if words[0] == "MemAvailable:") // 1024
        if available < more * MEMORY_MB:
            raise error(
                "lab-no-memory",
                f"{more} more machines with {MEMORY_MB} MiB each would run, and {available} MiB are there",
                hint="ask for fewer --nodes, or take down other labs: deploy lab list",
            )

    def ensure_image(self, release: str) -> str:
        """The path of a disk image, which machines share and do not write to."""
        return str(ensure_disk(release))

    def container(self, host: NewHost, machine: Machine) -> list[str]:  # noqa: ARG002 - a kernel of its own
        """A container in which nothing runs but the kernel."""
        return [
            f"--label={DISK_LABEL}={host.image}",
            "--privileged",
            # The memory of the machine is a file, which the kernel maps into each of its processes.
            f"--tmpfs={_MEMORY}:rw,exec,mode=1777,size={MEMORY_MB + _BESIDE_MEMORY_MB}m",
            f"--env=TMPDIR={_MEMORY}",
            f"--volume={host.image}:{DISK}:ro",
            KERNEL_IMAGE,
            START,
            f"ubd0={Path(DISK).with_name('disk.cow')},{DISK}",
            "root=/dev/ubda",
            "rw",
            f"mem={MEMORY_MB}M",
            "seccomp=on",
            "umid=machine",
            "uml_dir=/run",
            "con=null",
            "con0=null,fd:1",
            # Without gro the network stalls for minutes.
            f"vec0:transport=tap,ifname=tap0,depth=128,gro=1,mac={mac_address(host.address)}",
            f"systemd.hostname={host.name}",
        ]

    def placed(self, entries: Sequence[Entry]) -> list[Entry]:
        """Where the machine takes them from."""
        return [start_entry(), *(entry.below(FILES) for entry in entries)]

    def start(self, container: str, kernel_line: Sequence[str] = ()) -> None:
        """Its kernel is its own, and so are its namespaces."""
        # Podman takes the program that it starts a container with when it makes it.
        podman("cp", "-", f"{container}:/", data=pack([kernel_line_entry(kernel_line)]))
        podman("start", container)
        keep_address(container)

    def cut_off(self, containers: Sequence[str]) -> None:
        """Their kernels, which have their connections, end with them."""

    def entered(self, lab: Lab, host: str, session: Sequence[str], *, terminal: bool) -> list[str]:
        """Through ssh: podman sees no more of a machine than its kernel."""
        options = ["-t" if terminal else "-T", "-o", "LogLevel=ERROR"]
        keys = LabDirectory(lab.directory).keys
        return [*keys.ssh_command(lab.host(host).address, *options), shlex.join(["sudo", *session])]


USER_MODE = UserMode()

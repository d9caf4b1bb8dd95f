"""Machines that are systemd containers: there in seconds, with the kernel of this machine."""

from collections.abc import Sequence
from dataclasses import dataclass

from deploy.errors import error
from deploy.lab import image
from deploy.lab.addresses import mac_address
from deploy.lab.boot import boot
from deploy.lab.bridge import keep_address
from deploy.lab.machine import Machine, require_room
from deploy.lab.machines.kind import NewHost
from deploy.lab.podman import query, succeeds
from deploy.lab.state import SHARED_STATE, Lab, container_name, shared_volume
from deploy.lab.tarball import Entry


@dataclass(frozen=True)
class Containers:
    """See ``Kind``."""

    name: str = "containers"
    has_own_kernel: bool = False
    shared: tuple[str, ...] = ("/home", SHARED_STATE)

    def check(self) -> None:
        """What podman needs is enough."""

    def require_room(self, more: int) -> None:
        """Systemd in each watches files of the one kernel."""
        require_room(len(query("ps")) + more)

    def ensure_image(self, release: str) -> str:
        """The name of an image of podman's."""
        return image.ensure_image(release)

    def container(self, host: NewHost, machine: Machine) -> list[str]:
        """The container is the machine."""
        return [
            f"--mac-address={mac_address(host.address)}",
            *(f"--volume={shared_volume(host.lab, path)}:{path}" for path in host.shared),
            *image.system_options(machine),
            host.image,
            *image.start_command(machine),
        ]

    def placed(self, entries: Sequence[Entry]) -> list[Entry]:
        """Where they belong."""
        return [*entries]

    def start(self, container: str, kernel_line: Sequence[str] = ()) -> None:
        """Such that jobs can have a private /tmp. Raises DeployError ``lab-kernel-line``."""
        if kernel_line:
            raise error(
                "lab-kernel-line",
                "containers have the kernel of this machine, which runs already",
                hint="make a lab of machines with kernels of their own: deploy lab up --machines uml",
            )
        boot(container, "start", container)
        keep_address(container)

    def cut_off(self, containers: Sequence[str]) -> None:
        """The kernel outlives them, and would end their connections in order."""
        for container in containers:
            # One that has ended already has no network.
            succeeds("exec", container, "ip", "link", "set", "dev", "eth0", "down")

    def entered(self, lab: Lab, host: str, session: Sequence[str], *, terminal: bool) -> list[str]:
        """Through podman."""
        options = ["--interactive", *(["--tty"] if terminal else [])]
        return ["podman", "exec", *options, container_name(lab.name, host), *session]


CONTAINERS = Containers()

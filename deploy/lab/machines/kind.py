"""What depends on the kind of a lab's machines. All else is the same for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Protocol

from deploy.lab.machine import Machine
from deploy.lab.state import Lab
from deploy.lab.tarball import Entry


@dataclass(frozen=True)
class NewHost:
    """A machine that is about to be made."""

    lab: str
    name: str
    address: IPv4Address
    image: str
    """What it boots from, as ``ensure_image`` said."""
    shared: tuple[str, ...]
    """Directories that are one on all machines."""


class Kind(Protocol):
    """How machines of one kind are made, booted and entered; each lives in a container."""

    @property
    def name(self) -> str:
        """What is typed after ``--machines``."""

    @property
    def has_own_kernel(self) -> bool:
        """Whether a machine has a kernel, a clock, control groups and file systems of its own."""

    @property
    def shared(self) -> tuple[str, ...]:
        """The directories that the machines of a new lab share, without a file server."""

    def check(self) -> None:
        """Complain where this machine cannot carry such machines. Raises DeployError."""

    def require_room(self, more: int) -> None:
        """Complain where so many more running machines do not fit. Raises DeployError."""

    def ensure_image(self, release: str) -> str:
        """Make what the machines boot from, where it is not there. Raises DeployError."""

    def container(self, host: NewHost, machine: Machine) -> list[str]:
        """The rest of a ``podman create``: options, the image and its command."""

    def placed(self, entries: Sequence[Entry]) -> list[Entry]:
        """The machine's own files, as they are put into its container before it starts."""

    def start(self, container: str, kernel_line: Sequence[str] = ()) -> None:
        """Power a machine on, with further words for its kernel. Raises DeployError."""

    def cut_off(self, containers: Sequence[str]) -> None:
        """As the network sees a loss of power: from now on nobody hears anything of these machines."""

    def entered(self, lab: Lab, host: str, session: Sequence[str], *, terminal: bool) -> list[str]:
        """The command here that runs a command as root there, with this process's input and output."""

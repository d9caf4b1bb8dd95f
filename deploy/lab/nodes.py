"""One machine of a lab: how its container is made and what is put into it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from ipaddress import IPv4Address
from pathlib import Path
from threading import Lock

from deploy.errors import DeployError
from deploy.lab.access import KeyPair, make_key_pair
from deploy.lab.machine import Machine
from deploy.lab.machines.kind import Kind, NewHost
from deploy.lab.podman import podman, succeeds
from deploy.lab.recipe import ADMIN_HOME, ADMIN_UID
from deploy.lab.state import (
    ADDRESS,
    DIRECTORY,
    HOST,
    HOST_KEY,
    LAB,
    container_name,
    network_name,
)
from deploy.lab.tarball import Entry, pack

_NVIDIA_MAJOR = 195


@dataclass(frozen=True)
class NodeMaker:
    """Makes the machines of one lab."""

    lab: str
    directory: Path
    image: str
    addresses: Mapping[str, IPv4Address]
    gpus: Mapping[str, int]
    """Simulated GPUs by host; none on others."""
    admin_key: str
    machine: Machine
    kind: Kind
    shared: tuple[str, ...]
    """Directories that are one on all machines."""
    one_at_a_time: Lock = field(default_factory=Lock)
    """Podman locks volumes in no fixed order: two containers made at once can wait for each other."""

    def create(self, host: str) -> None:
        """Create and power on a machine; leaves nothing half made behind."""
        name = container_name(self.lab, host)
        keys = make_key_pair(host)
        with self.one_at_a_time:
            podman(*self.create_arguments(host, keys.public))
        try:
            # Podman's word for "as in the archive" is false: true gives every file to root.
            podman(
                "cp",
                "--archive=false",
                "-",
                f"{name}:/",
                data=pack(self.kind.placed(self.entries(host, keys))),
            )
            self.kind.start(name)
        except DeployError:
            succeeds("rm", "--force", "--time", "0", name)
            raise

    def create_arguments(self, host: str, host_key: str) -> list[str]:
        """The podman call that creates the container of a machine."""
        machine = self.machine
        address = self.addresses[host]
        labels: Mapping[str, str] = {
            LAB: self.lab,
            HOST: host,
            DIRECTORY: str(self.directory),
            ADDRESS: str(address),
            HOST_KEY: " ".join(host_key.split()[:2]),
        }
        return [
            f"--runtime={machine.runtime}",
            "create",
            f"--name={container_name(self.lab, host)}",
            f"--hostname={host}",
            *(f"--label={key}={value}" for key, value in labels.items()),
            f"--network={network_name(self.lab)}",
            f"--ip={address}",
            # /etc/hosts is then the machine's own file, as on a real one: kept over a power cycle.
            "--no-hosts",
            "--pids-limit=-1",
            f"--ulimit=nofile={machine.open_files}:{machine.open_files}",
            f"--ulimit=nproc={machine.processes}:{machine.processes}",
            *self.kind.container(NewHost(self.lab, host, address, self.image, self.shared), machine),
        ]

    def entries(self, host: str, keys: KeyPair) -> list[Entry]:
        """The files that belong to this machine alone."""
        ssh = f"{ADMIN_HOME}/.ssh"
        entries = [
            Entry("/etc/hosts", f"127.0.0.1 localhost\n{self.addresses[host]} {host}\n"),
            Entry("/etc/ssh/ssh_host_ed25519_key", keys.private, mode=0o600),
            Entry("/etc/ssh/ssh_host_ed25519_key.pub", keys.public),
            Entry(ssh, mode=0o700, uid=ADMIN_UID, gid=ADMIN_UID),
            Entry(f"{ssh}/authorized_keys", self.admin_key, mode=0o600, uid=ADMIN_UID, gid=ADMIN_UID),
        ]
        if count := self.gpus.get(host):
            entries += simulated_gpus(count)
        return entries


def simulated_gpus(count: int) -> list[Entry]:
    """Device files that a cgroup can grant and deny like real GPUs, made at every boot."""
    lines = [f"c! /dev/nvidia{index} 0666 root root - {_NVIDIA_MAJOR}:{index}" for index in range(count)]
    script = resources.files("deploy.lab").joinpath("nvidia_smi.py").read_text()
    return [
        Entry("/etc/tmpfiles.d/lab-gpus.conf", "\n".join(lines) + "\n"),
        Entry("/usr/local/bin/nvidia-smi", script, mode=0o755),
    ]

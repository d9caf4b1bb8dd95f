"""What labs exist. Podman knows it all: labels on networks and containers, no file of our own."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from deploy.errors import error
from deploy.lab.podman import query

LAB, HOST, DIRECTORY = "deploy.lab", "deploy.host", "deploy.directory"
RELEASE, GPUS, ADDRESS, HOST_KEY = "deploy.release", "deploy.gpus", "deploy.address", "deploy.host-key"
MACHINES = "deploy.machines"
REHEARSAL = "deploy.rehearsal"
SHARED_STATE = "/srv/slurm"
"""A directory that all machines share, for the state of several controllers."""


@dataclass(frozen=True)
class LabHost:
    """One machine of a lab."""

    name: str
    address: str
    state: str
    host_key: str
    has_run: bool = True
    """Whether it was ever powered on: podman calls one created, too, that ran when this machine went down."""

    @property
    def running(self) -> bool:
        """Whether it is powered on."""
        return self.state == "running"


@dataclass(frozen=True)
class Lab:
    """A lab as podman sees it now."""

    name: str
    directory: Path
    release: str
    gpus: int
    network: IPv4Network
    hosts: tuple[LabHost, ...]
    machines: str
    """The name of their kind."""
    is_rehearsal: bool = False
    """Whether its machines and its directory are those of a site that is rehearsed."""

    @property
    def names(self) -> list[str]:
        """The names of its machines."""
        return [host.name for host in self.hosts]

    def host(self, name: str) -> LabHost:
        """The machine of this name; complains with the names there are."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise error(
            "lab-host-unknown",
            f"lab {self.name} has no machine {name}",
            hint=f"its machines: {', '.join(self.names) or 'none yet'}",
        )


def network_name(lab: str) -> str:
    """The podman network of a lab."""
    return f"deploy-{lab}"


def container_name(lab: str, host: str) -> str:
    """The podman container of one machine."""
    return f"deploy-{lab}-{host}"


def shared_volume(lab: str, path: str) -> str:
    """The podman volume that all machines of a lab share as a directory."""
    return f"deploy-{lab}{path.replace('/', '-')}"


def check_name(name: str) -> None:
    """Refuse names that podman or a host name would not take."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", name):
        raise error(
            "lab-name",
            f"{name!r} cannot name a lab",
            hint="use lower-case letters, digits and dashes, a letter first: --name lab2",
        )


def all_labs() -> list[Lab]:
    """Every lab on this machine."""
    members: dict[str, list[LabHost]] = {}
    for container in query("ps", "--all", "--filter", f"label={LAB}"):
        labels = container["Labels"]
        members.setdefault(labels[LAB], []).append(
            LabHost(
                name=labels.get(HOST, container["Names"][0]),
                address=labels.get(ADDRESS, ""),
                state=container["State"],
                host_key=labels.get(HOST_KEY, ""),
                has_run=container.get("StartedAt", 1) > 0,
            )
        )
    found = []
    for network in query("network", "ls", "--filter", f"label={LAB}"):
        labels = network["labels"]
        hosts = members.get(labels[LAB], [])
        found.append(
            Lab(
                name=labels[LAB],
                directory=Path(labels[DIRECTORY]),
                release=labels[RELEASE],
                gpus=int(labels[GPUS]),
                network=IPv4Network(network["subnets"][0]["subnet"]),
                hosts=tuple(sorted(hosts, key=_natural_order)),
                machines=labels.get(MACHINES, "containers"),  # a lab from before there were kinds
                is_rehearsal=REHEARSAL in labels,
            )
        )
    return sorted(found, key=lambda lab: lab.name)


def find_lab(name: str) -> Lab | None:
    """The lab of this name, if it exists."""
    return next((lab for lab in all_labs() if lab.name == name), None)


def need_lab(name: str) -> Lab:
    """The lab of this name; complains with the names there are."""
    labs = all_labs()
    for lab in labs:
        if lab.name == name:
            return lab
    raise error(
        "lab-unknown",
        f"there is no lab named {name}",
        hint=f"existing labs: {', '.join(lab.name for lab in labs)} (choose with --name)"
        if labs
        else "make one: deploy lab up",
    )


def _natural_order(host: LabHost) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", host.name)]

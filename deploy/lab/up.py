"""Makes a lab, or completes one: what exists and runs is never touched."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path

from deploy.errors import DeployError, error
from deploy.lab.access import wait_for_ssh
from deploy.lab.addresses import (
    address_of,
    controller_number,
    dynamic_range,
    free_networks,
    hosts_of,
    node_number,
)
from deploy.lab.directory import LabDirectory
from deploy.lab.inventory_edit import lines_to_add
from deploy.lab.locks import exclusive
from deploy.lab.machine import Machine, inspect_machine
from deploy.lab.machines import DEFAULT, kind_named
from deploy.lab.machines.kind import Kind
from deploy.lab.nodes import NodeMaker
from deploy.lab.parallel import for_each
from deploy.lab.podman import podman, succeeds
from deploy.lab.routes import taken_networks
from deploy.lab.state import (
    DIRECTORY,
    GPUS,
    LAB,
    MACHINES,
    RELEASE,
    SHARED_STATE,
    Lab,
    all_labs,
    check_name,
    container_name,
    find_lab,
    need_lab,
    network_name,
    shared_volume,
)

SECONDS_TO_ANSWER = 120
MOST_GPUS = 16
_DEFAULT_NODES, _DEFAULT_CONTROLLERS, _DEFAULT_GPUS, _DEFAULT_RELEASE = 2, 1, 2, "trixie"


@dataclass(frozen=True)
class Wish:
    """What the admin asked for; None means: as it is, or the default for a new lab."""

    name: str
    directory: Path | None = None
    nodes: int | None = None
    controllers: int | None = None
    gpus: int | None = None
    release: str | None = None
    machines: str | None = None
    """The name of their kind."""
    write_inventory: bool = False
    isolated: bool = False
    """Machines that reach each other and this machine, and nothing else; decided when the lab is made."""
    monitoring: bool = False
    """A controller that watches the cluster; only for an inventory that is not there yet."""
    package_cache: bool = False
    """A controller that fetches every package for all, once; only for an inventory that is not there yet."""
    avoided: tuple[IPv4Network, ...] = ()
    """What no address of a new lab may be in: this machine would not reach it any more."""

    @property
    def place(self) -> Path:
        """The directory of a new lab."""
        return (self.directory or Path(self.name)).absolute()


@dataclass(frozen=True)
class Outcome:
    """What ``bring_up`` did."""

    lab: Lab
    inventory: Path
    made: tuple[str, ...]
    started: tuple[str, ...]
    to_add: str
    """Lines that the admin's inventory lacks; empty when it names every machine."""
    to_change: str
    """Lines that the admin's inventory has with another address; empty when all are right."""


def bring_up(wish: Wish, say: Callable[[str], None]) -> Outcome:
    """Make the lab, add machines to it or power its machines on, until all of them let the admin in."""
    check_name(wish.name)
    machine = inspect_machine()
    with exclusive(f"lab-{wish.name}"):
        lab = find_lab(wish.name)
        _check(wish, lab)
        kind = kind_named(lab.machines if lab else wish.machines or DEFAULT)
        kind.check()
        controllers = _count(lab, wish.controllers, controller_number, _DEFAULT_CONTROLLERS, "controllers")
        if controllers > 1 and SHARED_STATE not in kind.shared:
            raise error(
                "lab-size",
                f"several controllers keep their state in a directory that {kind.name} machines do not share",
                hint="make a lab of containers: leave --machines away",
            )
        nodes = _count(lab, wish.nodes, node_number, _DEFAULT_NODES, "compute nodes")
        hosts = hosts_of(nodes, controllers)
        ours = sum(host.running for host in lab.hosts) if lab else 0
        if ours < len(hosts):
            kind.require_room(len(hosts) - ours)
        if lab is None:
            release = wish.release or _DEFAULT_RELEASE
            say(f"image {release} ...")
            kind.ensure_image(release)  # first: a release that cannot be had leaves no lab behind
            lab = make_network(wish, release, kind)
        else:
            lab = _without_unfinished(lab)
        made = [host for host in hosts if host not in lab.names]
        stopped = [host.name for host in lab.hosts if not host.running]
        _boot(lab, made, stopped, machine, say)
        return _settle(need_lab(wish.name), made, stopped, machine=machine, wish=wish, say=say)


def _without_unfinished(lab: Lab) -> Lab:
    """Forget machines of an interrupted ``up``: they never ran, so nothing can be lost."""
    unfinished = [host for host in lab.hosts if not host.has_run]
    for host in unfinished:
        podman("rm", "--force", container_name(lab.name, host.name))
    return replace(lab, hosts=tuple(host for host in lab.hosts if host not in unfinished))


def _boot(
    lab: Lab, made: list[str], stopped: list[str], machine: Machine, say: Callable[[str], None]
) -> None:
    kind, keys = kind_named(lab.machines), LabDirectory(lab.directory).keys
    if lab.hosts and not keys.identity.exists():
        raise error(
            "lab-key-lost",
            f"the machines of lab {lab.name} open with a key that is gone",
            where=str(keys.identity),
            hint=f"put the file back, or start over: deploy lab down --name {lab.name}",
        )
    if made:
        maker = NodeMaker(
            lab=lab.name,
            directory=lab.directory,
            image=kind.ensure_image(lab.release),
            addresses={host: address_of(host, lab.network) for host in made},
            gpus={host: lab.gpus for host in made if node_number(host)},
            admin_key=keys.public_key(),
            machine=machine,
            kind=kind,
            shared=kind.shared,
        )
        boot_all(made, maker, say)
    if stopped:
        say(f"powering on {', '.join(stopped)} ...")
        for_each(stopped, lambda host: kind.start(container_name(lab.name, host)))


def boot_all(hosts: list[str], maker: NodeMaker, say: Callable[[str], None]) -> None:
    """Makes the directories that machines share, and boots the machines."""
    for path in maker.shared:
        if not succeeds("volume", "exists", shared_volume(maker.lab, path)):
            podman("volume", "create", f"--label={LAB}={maker.lab}", shared_volume(maker.lab, path))
    say(f"booting {', '.join(hosts)} ...")
    for_each(hosts, maker.create)


def _settle(
    lab: Lab,
    made: list[str],
    started: list[str],
    *,
    machine: Machine,
    wish: Wish,
    say: Callable[[str], None],
) -> Outcome:
    directory = LabDirectory(lab.directory)
    addresses = {host.name: host.address for host in lab.hosts}
    directory.keys.write_known_hosts({host.address: host.host_key for host in lab.hosts})
    directory.write(
        addresses,
        release=lab.release,
        gpus=lab.gpus,
        cgroup_v1=machine.cgroup_v1,
        own_kernel=kind_named(lab.machines).has_own_kernel,
        monitoring=wish.monitoring,
        package_cache=wish.package_cache,
    )
    say("waiting for ssh ...")
    wait_for_ssh(lab.name, directory.keys, addresses, SECONDS_TO_ANSWER)
    missing = directory.missing(addresses)
    nodes = {host: address for host, address in missing.items() if node_number(host)}
    if wish.write_inventory and nodes:
        directory.add(nodes)
        say(f"added to {directory.inventory}: {', '.join(nodes)}")
        missing = directory.missing(addresses)
    return Outcome(
        lab=lab,
        inventory=directory.inventory,
        made=tuple(made),
        started=tuple(started),
        to_add=lines_to_add(missing) if missing else "",
        to_change=directory.moved(addresses),
    )


def _count(lab: Lab | None, asked: int | None, number: Callable[[str], int], default: int, what: str) -> int:
    """How many machines of a sort there shall be; ``number`` is 0 for those of others."""
    existing = max((number(host.name) for host in lab.hosts), default=0) if lab else 0
    wanted = asked if asked is not None else existing or default
    if lab and wanted < existing:
        raise error(
            "lab-shrink",
            f"lab {lab.name} has {existing} {what} already; up only adds",
            hint=f"ask for {existing} or more, or start over: deploy lab down --name {lab.name}",
        )
    return wanted


def _check(wish: Wish, lab: Lab | None) -> None:
    """Refuse what cannot be had, before anything is made."""
    if wish.gpus is not None and not 0 <= wish.gpus <= MOST_GPUS:
        raise error(
            "lab-size",
            f"a machine has 0 to {MOST_GPUS} simulated GPUs, not {wish.gpus}",
            hint=f"type --gpus with a number from 0 to {MOST_GPUS}",
        )
    directory = wish.directory.absolute() if wish.directory else None
    if directory and directory.exists() and not directory.is_dir():
        raise error(
            "lab-directory",
            "the lab's files go into a directory, and this is none",
            where=str(directory),
            hint="choose another place with --dir",
        )
    if lab is None:
        _refuse_taken(wish.place)
        return
    if lab.is_rehearsal:
        raise error(
            "lab-is-rehearsal",
            f"lab {lab.name} is the rehearsal of a site, to which nothing is added",
            hint=f"choose another --name, or take it down: deploy lab down --name {lab.name} --delete-dir",
        )
    asked = (
        ("dir", directory, lab.directory),
        ("release", wish.release, lab.release),
        ("machines", wish.machines, lab.machines),
        ("gpus", wish.gpus, lab.gpus),
    )
    for option, wanted, existing in asked:
        if wanted is not None and wanted != existing:
            raise error(
                "lab-differs",
                f"lab {lab.name} was made with --{option} {existing}, which cannot become {wanted}",
                hint=f"leave --{option} away, choose another --name, or: deploy lab down --name {lab.name}",
            )


def _refuse_taken(place: Path) -> None:
    """Raises DeployError ``lab-directory-taken`` where a directory is a site's or another lab's."""
    others = [lab.name for lab in all_labs() if lab.directory.resolve() == place.resolve()]
    found = [f"lab {name}"] if (name := ", ".join(others)) else LabDirectory(place).of_a_site()
    if found:
        raise error(
            "lab-directory-taken",
            f"a new lab does not write into what is a site's or another lab's: {', '.join(found)}",
            where=str(place),
            hint=f"choose another place: --dir {place}-lab",
        )


def make_network(wish: Wish, release: str, kind: Kind, *more_labels: str) -> Lab:
    """A lab without any machine yet. Raises DeployError ``lab-no-network``."""
    labels = {
        LAB: wish.name,
        DIRECTORY: str(wish.place),
        RELEASE: release,
        MACHINES: kind.name,
        GPUS: str(_DEFAULT_GPUS if wish.gpus is None else wish.gpus),
        **dict.fromkeys(more_labels, "true"),
    }
    # Two labs in two directories may be made at this moment: the loser of a race takes the next network.
    for network in free_networks(wish.name, [*taken_networks(), *wish.avoided]):
        try:
            podman(*_network_arguments(wish.name, network, labels, isolated=wish.isolated))
        except DeployError as problem:
            if re.search(r"already (used|in use)", str(problem)):
                continue
            raise
        return need_lab(wish.name)
    raise error(
        "lab-no-network",
        "no free private network is left for a lab",
        hint="see them with: deploy lab list",
    )


def _network_arguments(
    name: str, network: IPv4Network, labels: dict[str, str], *, isolated: bool
) -> list[str]:
    return [
        "network",
        "create",
        *(["--internal"] if isolated else []),
        # Podman's name server forgets machines that are off, and then Slurm does not take them back.
        "--disable-dns",
        f"--subnet={network}",
        f"--gateway={network[1]}",
        f"--ip-range={dynamic_range(network)}",
        *(f"--label={key}={value}" for key, value in labels.items()),
        network_name(name),
    ]

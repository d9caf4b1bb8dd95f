"""Which machines a lab has and which addresses they get: always the same ones for the same name."""

import re
import zlib
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv4Network

from deploy.errors import error

MOST_NODES = 100
MOST_CONTROLLERS = 3
FIXED_HOSTS = {"ctl1": 2, "login1": 3, "ctl2": 4, "ctl3": 5}
_FIRST_NODE = 10
_POOL = IPv4Network("10.213.0.0/16")
_DYNAMIC_PREFIX = 26


def hosts_of(nodes: int, controllers: int = 1) -> list[str]:
    """The machines of a lab with this many compute nodes and controllers."""
    if not 1 <= nodes <= MOST_NODES:
        raise error(
            "lab-size",
            f"a lab has 1 to {MOST_NODES} compute nodes, not {nodes}",
            hint=f"type --nodes with a number from 1 to {MOST_NODES}",
        )
    if not 1 <= controllers <= MOST_CONTROLLERS:
        raise error(
            "lab-size",
            f"a lab has 1 to {MOST_CONTROLLERS} controllers, not {controllers}",
            hint=f"type --controllers with a number from 1 to {MOST_CONTROLLERS}",
        )
    masters = (f"ctl{index}" for index in range(1, controllers + 1))
    return [*masters, "login1", *(f"node{index}" for index in range(1, nodes + 1))]


def node_number(host: str) -> int:
    """3 for node3; 0 for the machines that are no compute nodes."""
    match = re.fullmatch(r"node(\d+)", host)
    return int(match[1]) if match else 0


def controller_number(host: str) -> int:
    """2 for ctl2; 0 for the machines that run no slurmctld."""
    match = re.fullmatch(r"ctl(\d+)", host)
    return int(match[1]) if match else 0


def address_of(host: str, network: IPv4Network) -> IPv4Address:
    """The address a machine keeps for as long as its lab exists."""
    number = node_number(host)
    return network[_FIRST_NODE + number if number else FIXED_HOSTS[host]]


def is_of_labs(address: str) -> bool:
    """Whether it is one that a lab may have."""
    try:
        return IPv4Address(address) in _POOL
    except ValueError:
        return False


def mac_address(address: IPv4Address) -> str:
    """A hardware address that survives a power cycle, so that no neighbour has to look for it anew."""
    return ":".join(f"{octet:02x}" for octet in (0x02, 0xDE, *address.packed))


def dynamic_range(network: IPv4Network) -> IPv4Network:
    """The top of the network, left to podman for containers without a fixed address."""
    return list(network.subnets(new_prefix=_DYNAMIC_PREFIX))[-1]


def free_networks(lab: str, taken: Iterable[IPv4Network]) -> Iterator[IPv4Network]:
    """Networks for a lab that overlap none of ``taken``, in order of preference.

    Each name has its own favourite: a lab that is made again gets the addresses its inventory knows.
    """
    used, pool = list(taken), list(_POOL.subnets(new_prefix=24))
    favourite = zlib.crc32(lab.encode()) % len(pool)
    for candidate in (*pool[favourite:], *pool[:favourite]):
        if not any(candidate.overlaps(other) for other in used):
            yield candidate

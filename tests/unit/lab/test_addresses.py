from ipaddress import IPv4Address, IPv4Network

import pytest

from deploy.errors import DeployError
from deploy.lab.addresses import (
    MOST_NODES,
    address_of,
    dynamic_range,
    free_networks,
    hosts_of,
    mac_address,
    node_number,
)

NETWORK = IPv4Network("10.213.7.0/24")


def test_machines_of_a_lab() -> None:
    assert hosts_of(2) == ["ctl1", "login1", "node1", "node2"]


@pytest.mark.parametrize("nodes", [0, -1, MOST_NODES + 1])
def test_impossible_sizes_are_refused(nodes: int) -> None:
    with pytest.raises(DeployError, match=r"1 to 100 compute nodes.*lab-size"):
        hosts_of(nodes)


def test_every_machine_has_its_own_fixed_address() -> None:
    hosts = hosts_of(MOST_NODES)
    addresses = {address_of(host, NETWORK) for host in hosts}
    assert len(addresses) == len(hosts)
    assert NETWORK[1] not in addresses  # the gateway
    assert not any(address in dynamic_range(NETWORK) for address in addresses)
    assert all(address in NETWORK for address in addresses)
    assert len({mac_address(address) for address in addresses}) == len(hosts)


def test_addresses_do_not_depend_on_the_number_of_machines() -> None:
    assert address_of("ctl1", NETWORK) == IPv4Address("10.213.7.2")
    assert address_of("node3", NETWORK) == IPv4Address("10.213.7.13")


def test_hardware_address_is_a_local_one() -> None:
    assert mac_address(IPv4Address("10.213.7.13")) == "02:de:0a:d5:07:0d"


def test_node_numbers() -> None:
    assert [node_number(host) for host in ("node12", "ctl1", "login1")] == [12, 0, 0]


def test_taken_networks_are_avoided() -> None:
    favourite = next(free_networks("lab", []))
    assert next(free_networks("lab", [])) == favourite
    others = list(free_networks("lab", [favourite, IPv4Network("192.0.2.0/24")]))
    assert favourite not in others
    assert len(others) == 255
    assert not list(free_networks("lab", [IPv4Network("10.0.0.0/8")]))

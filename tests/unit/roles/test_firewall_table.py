import importlib
from typing import Any

import pytest

import tests.unit.roles.loading  # noqa: F401 - has Ansible find the roles' own code

module = importlib.import_module("ansible.module_utils.firewall_table")

SITE: dict[str, Any] = {
    "cluster": ["10.0.0.1", "10.0.0.2", "fd00::/64"],
    "ssh_ports": [22, 2222],
    "ssh_from": ["192.0.2.0/24"],
    "opened": [
        {"ports": ["8000-8099", "443"], "from": ["10.1.0.0/16"]},
        {"ports": ["53"], "protocol": "udp"},
    ],
    "guarded": [
        {"ports": ["9100"], "from": ["10.0.0.1"]},
        {"ports": ["9090", "443"], "from": ["192.0.2.0/24"]},
    ],
}


def table(**changes: Any) -> Any:  # noqa: ANN401
    return module.Table.of({**SITE, **changes})


@pytest.mark.parametrize(
    ("address", "port", "expected"),
    [
        ("10.0.0.2", 6818, True),
        ("10.0.0.3", 6818, False),
        ("10.0.0.1", 9100, True),
        ("10.0.0.2", 9100, False),
        ("10.0.0.1", 9090, False),
        ("192.0.2.9", 9090, True),
        ("fd00::7", 6818, True),
        ("192.0.2.9", 2222, True),
        ("10.0.0.2", 443, False),
        ("::ffff:192.0.2.9", 22, True),
        ("fe80::1%eth0", 22, False),
        ("10.1.2.3", 8050, True),
        ("10.1.2.3", 22, False),
        ("8.8.8.8", 53, False),
    ],
)
def test_who_is_admitted(*, address: str, port: int, expected: bool) -> None:
    assert table().admits(address, port) is expected


def test_the_text_replaces_the_table_in_one_transaction() -> None:
    lines = table().text().splitlines()
    assert lines[1:4] == ["table inet deploy", "delete table inet deploy", "table inet deploy {"]
    rules = [line.strip() for line in lines]
    assert "ip saddr { 10.0.0.1, 10.0.0.2 } accept" in rules
    assert "ip6 saddr { fd00::/64 } accept" in rules
    assert "ip saddr { 192.0.2.0/24 } tcp dport { 22, 2222 } accept" in rules
    assert "ip saddr { 10.1.0.0/16 } tcp dport { 443, 8000-8099 } accept" in rules
    assert "meta nfproto ipv6 udp dport { 53 } accept" in rules
    shut = "tcp dport { 9100 } reject with icmpx admin-prohibited"
    opened, own = (
        "ip saddr { 10.1.0.0/16 } tcp dport { 443, 8000-8099 } accept",
        "ip saddr { 10.0.0.1 } tcp dport { 9100 } accept",
    )
    cluster = "ip saddr { 10.0.0.1, 10.0.0.2 } accept"
    assert rules.index(opened) < rules.index(own) < rules.index(shut) < rules.index(cluster)
    assert rules[-3] == "reject with icmpx admin-prohibited"


def test_without_admins_nobody_outside_has_ssh() -> None:
    text = table(ssh_from=[], opened=[]).text()
    assert "dport { 22" not in text
    assert not table(ssh_from=[]).admits("192.0.2.9", 22)


def test_overlapping_networks_are_one() -> None:
    assert [str(network) for network in module.networks(["10.0.0.0/24", "10.0.0.7", "10.0.1.0/24"])] == [
        "10.0.0.0/23"
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": ["node1"]},
        {"opened": [{"ports": ["0"]}]},
        {"opened": [{"ports": ["9-1"]}]},
        {"ssh_from": ["x/8"]},
    ],
)
def test_what_is_no_address_or_port_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        table(**changes)

"""Names resolve, the own name not to a loopback address, and foreign lines stay."""

import pytest

from molecule.conftest import On


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("node9", "192.0.2.9"),
        ("node10.cluster", "192.0.2.10"),
        ("node9-v6", "2001:db8::9"),
        ("printer", "192.0.2.77"),
    ],
)
def test_names_resolve(on: On, machine: str, name: str, address: str) -> None:
    assert on(machine, "getent", "hosts", name).stdout.split()[0] == address


def test_own_name_is_no_loopback_address(on: On, machine: str) -> None:
    lines = on(machine, "cat", "/etc/hosts").stdout.splitlines()
    assert not [line for line in lines if line.startswith("127.0.1.1")]
    addresses = on(machine, "getent", "ahosts", f"molecule-hosts-file-{machine}").stdout
    assert "192.0.2.1 " in addresses
    assert "127.0." not in addresses


def test_block_is_in_the_order_of_addresses(on: On, machine: str) -> None:
    lines = on(machine, "cat", "/etc/hosts").stdout.splitlines()
    begin = next(index for index, line in enumerate(lines) if line.startswith("# BEGIN cluster hosts"))
    kept = [line.split()[0] for line in lines[begin + 1 : begin + 5]]
    assert kept == ["192.0.2.1", "192.0.2.9", "192.0.2.10", "2001:db8::9"]


def test_cloud_init_leaves_the_file_alone(on: On, machine: str) -> None:
    assert "manage_etc_hosts: false" in on(machine, "cat", "/etc/cloud/cloud.cfg.d/99-hosts-file.cfg").stdout

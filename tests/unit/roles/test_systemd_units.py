from importlib import import_module

from tests.unit.roles import loading

assert loading
systemd = import_module("ansible.module_utils.systemd_units")


def test_units_come_in_the_order_of_the_question() -> None:
    text = "LoadState=loaded\nEnvironment=A=b\n\nLoadState=not-found\n"
    assert systemd.parse_units(text) == [
        {"LoadState": "loaded", "Environment": "A=b"},
        {"LoadState": "not-found"},
    ]

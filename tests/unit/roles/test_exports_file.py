import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/nfs_server/module_utils/exports_file.py")

NODES = ["10.0.0.11", "fd00::1"]


def test_every_client_by_its_address_with_squashed_root() -> None:
    text = module.exports_text([{"path": "/home"}], NODES)
    options = "(rw,sync,no_subtree_check,root_squash)"
    assert text == f"{module.HEADER}/home 10.0.0.11{options} fd00::1{options}\n"


def test_an_export_has_its_own_clients_and_options() -> None:
    export = {
        "path": "/srv/my data",
        "clients": ["10.0.0.11", "192.0.2.0/24"],
        "read_only": True,
        "root_squash": False,
        "options": ["fsid=7"],
    }
    options = "(ro,sync,no_subtree_check,no_root_squash,fsid=7)"
    assert module.exports_text([export], ["10.0.0.11"]).splitlines()[1] == (
        f'"/srv/my data" 10.0.0.11{options} 192.0.2.0/24{options}'
    )


def test_what_nobody_may_mount_is_not_exported() -> None:
    assert module.exports_text([{"path": "/home"}], []) == module.HEADER


@pytest.mark.parametrize("client", ["*", "10.0.0.0/40", "", "a b", "(rw)", "*.example"])
def test_everybody_is_no_client(client: str) -> None:
    assert module.problems([{"path": "/home"}], [client])


def test_good_clients() -> None:
    clients = ["10.0.0.1", "10.0.0.0/16", "fd00::/8", "login1.example"]
    assert module.problems([{"path": "/home"}], clients) == []


def test_one_directory_twice() -> None:
    assert module.problems([{"path": "/home"}, {"path": "/home"}], NODES) == ["/home is exported twice"]

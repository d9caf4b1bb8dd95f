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


RIGHTS = "(sync,wdelay,hide,no_subtree_check,sec=sys,rw,secure,root_squash,no_all_squash)"
BY_HAND = RIGHTS.replace("root_squash", "no_root_squash")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (f"/home  10.0.0.11{RIGHTS}\n/home  fd00::1{RIGHTS}\n/other  *{BY_HAND}\n", False),
        (f"/home  10.0.0.11{RIGHTS}\n/home  fd00:0::1{RIGHTS}\n", False),
        (f"/home  10.0.0.11{RIGHTS}\n", True),
        (f"/home  10.0.0.11{BY_HAND}\n/home  fd00::1{RIGHTS}\n", True),
        (f"/home  10.0.0.11{RIGHTS.replace('rw', 'ro')}\n/home  fd00::1{RIGHTS}\n", True),
        ("", True),
    ],
)
def test_what_the_server_knows(known: str, *, expected: bool) -> None:
    assert module.is_known_otherwise(known, [{"path": "/home"}], NODES) is expected


def test_rights_that_a_site_gives_by_options_and_clients_by_name() -> None:
    export = {"path": "/my data", "options": ["no_root_squash"], "clients": ["login1.example"]}
    assert not module.is_known_otherwise(f"/my\\040data  10.0.0.0/24{BY_HAND}\n", [export], ["10.0.0.9/24"])
    assert not module.is_known_otherwise("", [], NODES)


@pytest.mark.parametrize("client", ["*", "10.0.0.0/40", "", "a b", "(rw)", "*.example"])
def test_everybody_is_no_client(client: str) -> None:
    assert module.problems([{"path": "/home"}], [client])


def test_good_clients() -> None:
    clients = ["10.0.0.1", "10.0.0.0/16", "fd00::/8", "login1.example"]
    assert module.problems([{"path": "/home"}], clients) == []


def test_one_directory_twice() -> None:
    assert module.problems([{"path": "/home"}, {"path": "/home"}], NODES) == ["/home is exported twice"]

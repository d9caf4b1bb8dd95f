"""What exportfs makes of the exports: who may mount what, and with which rights."""

import re

from molecule.conftest import MACHINES, Converge, On


def exported(on: On, machine: str) -> dict[tuple[str, str], set[str]]:
    """The rights of every client in every directory, as exportfs knows them."""
    lines = on(machine, "exportfs", "-s").stdout.splitlines()
    found = [re.fullmatch(r"(\S+)\s+(.+)\(([^()]*)\)", line) for line in lines]
    return {(match[1], match[2]): set(match[3].split(",")) for match in found if match}


def test_clients_have_the_rights_that_were_declared(on: On, machine: str) -> None:
    rights = exported(on, machine)
    assert {"rw", "root_squash", "no_subtree_check"} <= rights["/srv/home", "10.0.0.11"]
    assert {"ro", "root_squash"} <= rights["/srv/software", "192.0.2.0/24"]
    assert {"rw", "no_root_squash"} <= rights["/srv/trusted", "10.0.0.11"]
    assert ("/srv/home", "192.0.2.0/24") not in rights
    assert all("*" not in client for _, client in rights)


def test_directories_are_made(on: On, machine: str) -> None:
    assert on(machine, "stat", "--format=%U %a", "/srv/home").stdout == "root 755\n"


def test_it_has_its_threads_and_starts_at_boot(on: On, machine: str) -> None:
    assert on(machine, "nfsconf", "--get", "nfsd", "threads").stdout == "5\n"
    assert on(machine, "systemctl", "is-enabled", "nfs-server").stdout == "enabled\n"


def test_a_new_client_is_known_without_a_restart(on: On, converge: Converge) -> None:
    def starts() -> list[str]:
        name = "--property=ActiveEnterTimestampMonotonic"
        return [on(machine, "systemctl", "show", "nfs-server", name).stdout for machine in MACHINES]

    before = starts()
    answer = converge(tags="configure,service", more_clients=["10.0.0.12"])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert ("/srv/home", "10.0.0.12") in exported(on, "trixie")
    assert ("/srv/home", "10.0.0.12") in exported(on, "bookworm")
    assert starts() == before


def test_everybody_is_no_client(on: On, converge: Converge) -> None:
    answer = converge(tags="configure,service", more_clients=["*"])
    assert answer.returncode == 2
    assert "'*' is neither an address, a network nor a host name" in answer.stdout + answer.stderr
    assert all(client != "*" for _, client in exported(on, "trixie"))

"""A package is fetched once for all, a cache that does not answer stops nobody, and strangers get nothing."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from molecule.conftest import Converge, On

NUMBERS = {"bookworm": 1, "trixie": 2}
OTHER = {"bookworm": "trixie", "trixie": "bookworm"}
LOG = "/var/log/apt-cacher-ng/apt-cacher.log"
PAGE = "acng-report.html"
ASK = """
import http.client, sys
source, target, path, *credentials = sys.argv[1:]
connection = http.client.HTTPConnection(target, 3142, timeout=10, source_address=(source, 0))
try:
    connection.request("GET", path, headers={"Authorization": word for word in credentials})
    print(connection.getresponse().status)
except OSError as problem:
    print(type(problem).__name__)
"""


def install(on: On, machine: str) -> None:
    """Installs a package that has to be fetched."""
    on(machine, "dpkg", "--purge", "tree")
    on(machine, "apt-get", "clean")
    on(machine, "apt-get", "install", "--yes", "tree")


def deliveries(on: On, cache: str, machine: str) -> str:
    """What a cache did with the package for a machine: I where it fetched it, O where it gave it."""
    log = on(cache, "cat", LOG, check=False).stdout
    asked = rf"^\d+\|([IO])\|\d+\|10\.78\.0\.{NUMBERS[machine]}\|\S+/tree_\S+\.deb$"
    return "".join(re.findall(asked, log, re.MULTILINE))


@contextmanager
def signalled(on: On, machine: str, first: str, then: str) -> Iterator[None]:
    on(machine, "systemctl", *first.split(), "apt-cacher-ng")
    try:
        yield
    finally:
        on(machine, "systemctl", *then.split(), "apt-cacher-ng")


def asked(on: On, machine: str, path: str, *credentials: str, source: str = "", target: str = "") -> str:
    """What the cache of the other machine answers."""
    source = source or f"10.78.0.{NUMBERS[machine]}"
    target = target or f"10.78.0.{NUMBERS[OTHER[machine]]}"
    return on(machine, "python3", "-c", ASK, source, target, path, *credentials).stdout.strip()


def other_address(on: On, machine: str) -> str:
    """A machine's address outside of the cluster."""
    lines = on(machine, "ip", "-4", "-brief", "address", "show", "dev", "eth0").stdout.split()
    return next(word.split("/")[0] for word in lines[2:] if "/" in word and not word.startswith("10.78."))


def test_a_package_is_fetched_once(on: On, machine: str) -> None:
    install(on, machine)
    install(on, machine)
    assert deliveries(on, OTHER[machine], machine) == "IOO"


@pytest.mark.parametrize(
    ("first", "then"),
    [("stop", "start"), ("kill --signal=STOP", "kill --signal=CONT")],
    ids=["stopped", "silent"],
)
def test_without_the_cache_packages_come_directly(on: On, machine: str, first: str, then: str) -> None:
    cache = OTHER[machine]
    before = deliveries(on, cache, machine)
    with signalled(on, cache, first, then):
        install(on, machine)
    assert deliveries(on, cache, machine) == before


def test_only_the_cluster_is_served(on: On, machine: str) -> None:
    stranger, target = other_address(on, machine), other_address(on, OTHER[machine])
    assert asked(on, machine, f"/{PAGE}") == "200"
    assert asked(on, machine, f"/{PAGE}", source=stranger) in {"RemoteDisconnected", "ConnectionResetError"}
    assert asked(on, machine, f"/{PAGE}", source=stranger, target=target) == "ConnectionRefusedError"


def test_it_is_no_way_to_pages(on: On, machine: str) -> None:
    assert asked(on, machine, "http://deb.example/index.html") == "403"


def test_it_is_no_way_to_other_services(on: On, machine: str) -> None:
    """A query that ends like a package is enough for what it fetches; its ports are those of archives."""
    for address in ("127.0.0.1", f"10.78.0.{NUMBERS[OTHER[machine]]}"):
        assert asked(on, machine, f"http://{address}:3142/{PAGE}?a.deb") == "403"


def test_the_page_does_nothing_without_the_password(on: On, machine: str) -> None:
    assert asked(on, machine, f"/{PAGE}?doExpire=yes") == "401"
    assert asked(on, machine, f"/{PAGE}?doExpire=yes", "Basic YWRtaW46YWRtaW4=") == "401"
    file = "/etc/apt-cacher-ng/deploy-admin.conf"
    assert on(machine, "stat", "--format=%a %U %G", file).stdout == "640 root apt-cacher-ng\n"
    assert re.fullmatch(r"AdminAuth: admin:\w{40}\n", on(machine, "cat", file).stdout)


def test_the_password_is_closed_again(on: On, machine: str, converge: Converge) -> None:
    file = "/etc/apt-cacher-ng/deploy-admin.conf"
    on(machine, "chmod", "0644", file)
    assert converge(only=machine, tags="configure").returncode == 0
    assert on(machine, "stat", "--format=%a", file).stdout == "640\n"


def test_old_packages_are_removed_every_day(on: On, machine: str) -> None:
    on(machine, "run-parts", "--exit-on-error", "/etc/cron.daily")
    assert on(machine, "systemctl", "is-active", "cron").stdout == "active\n"
    assert on(machine, "sh", "-c", "ls /var/log/apt-cacher-ng/maint_*.log.html").stdout

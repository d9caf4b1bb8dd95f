"""Hosts that controllers remember and the inventory does not name any more."""

import pytest

from deploy.judge.departed import Departed, departed_hosts, left_over_events, remembered
from deploy.site.inventory import Site, read_site
from tests.unit.site.sites import write_site

_SECRETS = {"ansible_password": "p", "ansible_become_password": "b", "ansible_ssh_private_key_file": "/k"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return read_site(write_site(tmp_path_factory.mktemp("site")))


def test_nothing_secret_is_remembered(site: Site) -> None:
    host = site.hosts["node1"]
    told = type(host)(
        "node1", {}, host.groups, connection={**_SECRETS, "ansible_host": "10.0.0.9", "ansible_port": 22}
    )
    entry = remembered([told])["node1"]
    assert entry == {
        "connection": {"ansible_host": "10.0.0.9", "ansible_port": 22},
        "groups": sorted(host.groups),
    }


def test_who_left_is_reached_as_its_like_are(site: Site) -> None:
    known = remembered(site.cluster)
    assert departed_hosts(site, known) == {}
    known["old"] = {"connection": {"ansible_host": "10.9.9.9"}, "groups": ["slurm-node"]}
    like = site.hosts["node1"]
    like.connection["ansible_ssh_common_args"] = "-J jump"  # type: ignore[index]
    (host,) = departed_hosts(site, known).values()
    assert host.connection == {"ansible_host": "10.9.9.9", "ansible_ssh_common_args": "-J jump"}


def test_a_machine_with_another_name_is_still_there(site: Site) -> None:
    address = site.hosts["node1"].address
    known = {"old": {"connection": {"ansible_host": address}, "groups": []}}
    assert departed_hosts(site, known) == {}


def test_who_left_is_named_until_it_is_gone() -> None:
    hosts = [Departed("a"), Departed("b", ("running slurmd",)), Departed("c", why="no route")]
    told = list(left_over_events({"d": ("user alice",), "e": ()}, hosts, "inv.ini"))
    assert [event.host for event in told] == ["b", "c", "d"]
    assert str(told[0]) == (
        "b: left the inventory, and still has: running slurmd\n  -> deploy node remove inv.ini b"
    )
    assert "no route" in str(told[1])
    assert "--gone" in str(told[1])
    assert "user alice" in str(told[2])

"""Who has the database of a site with one host for it, and with three."""

from pathlib import Path

from deploy.plan.database_vars import arbiter_variables, database_backup, member_variables, with_guarded
from deploy.site.inventory import Site, read_site
from deploy.site.secrets import OF_MEMBERS, missing_secrets

HOSTS = """\
[all]
ctl1 ansible_host=10.0.0.1
db1 ansible_host=10.0.0.2
db2 ansible_host=10.0.0.3
node1 ansible_host=10.0.0.4
[slurm-master]
ctl1
[slurm-node]
node1
"""
WATCHER = {"name": "watcher", "privileges": "*.*:PROCESS"}
ADDRESSES = ["10.0.0.2", "10.0.0.3", "10.0.0.1"]


def site_with(tmp_path: Path, *hosts: str) -> Site:
    inventory = tmp_path / "inventory.ini"
    inventory.write_text(HOSTS + "[slurm-database]\n" + "\n".join(hosts) + "\n")
    return read_site(inventory)


def test_one_host_has_a_server_of_its_own(tmp_path: Path) -> None:
    site = site_with(tmp_path, "db1")
    assert [host.name for host in site.database_hosts] == ["db1"]
    assert site.database_arbiter is None
    assert set(member_variables(site, site.hosts["db1"], WATCHER)) == {
        "mariadb_added_databases",
        "mariadb_added_users",
    }
    assert (database_backup(site), arbiter_variables(site)) == ("", {})
    assert with_guarded(site, site.hosts["db1"], {"a": 1}) == {"a": 1}
    assert OF_MEMBERS not in missing_secrets(site, None)


def test_of_three_two_have_the_database_and_the_third_a_vote(tmp_path: Path) -> None:
    site = site_with(tmp_path, "db1", "db2", "ctl1")
    assert [host.name for host in site.database_hosts] == ["db1", "db2"]
    assert site.database_arbiter == site.hosts["ctl1"]
    assert database_backup(site) == "db2"
    first, second = (member_variables(site, site.hosts[name], WATCHER) for name in ("db1", "db2"))
    assert (first["mariadb_fills"], second["mariadb_fills"]) == (True, False)
    assert first["mariadb_cluster_members"] == second["mariadb_cluster_members"] == ADDRESSES
    assert second["mariadb_cluster_address"] == "10.0.0.3"
    assert member_variables(site, site.hosts["ctl1"], WATCHER) == {}
    arbiter = arbiter_variables(site)
    assert (arbiter["mariadb_arbiter_members"], arbiter["mariadb_arbiter_address"]) == (ADDRESSES, "10.0.0.1")
    assert OF_MEMBERS in missing_secrets(site, None)


def test_members_alone_reach_the_ports_of_members(tmp_path: Path) -> None:
    site = site_with(tmp_path, "db1", "db2", "ctl1")
    before = {"firewall_guarded": [{"ports": ["9100"], "from": []}]}
    for name in ("db1", "ctl1"):
        guarded = with_guarded(site, site.hosts[name], before)["firewall_guarded"]
        assert guarded[1:] == [{"ports": ["4444", "4567", "4568"], "from": sorted(ADDRESSES)}]
    assert with_guarded(site, site.hosts["node1"], before) == before

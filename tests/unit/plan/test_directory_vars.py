"""What hosts know of the directory that people come from, and the phases that wait for it."""

from pathlib import Path
from typing import Any

from deploy.plan.build import build_plan
from deploy.plan.catalog import prerequisites
from deploy.plan.generated_inventory import generated_inventory
from deploy.plan.questions import services_by_host
from deploy.site.inventory import read_site
from tests.unit.site.sites import write_site

DIRECTORY = """\
sssd_servers: [ldaps://ldap.site.example]
sssd_search_base: dc=site,dc=example
sssd_sudo_groups: [{name: operators}]
ansible_user: ops
"""


def hosts_of(place: Path, text: str) -> dict[str, Any]:
    site = read_site(write_site(place, files={"group_vars/all.yml": text}))
    groups: dict[str, Any] = generated_inventory(site, build_plan(site), {})["all"]["children"]
    members: dict[str, Any] = groups.get("phase_directory", {"hosts": {}})["hosts"]
    assert [*members] in ([], ["ctl1", "login1", "node1", "node2"])
    asked = {name for name, services in services_by_host(site, {}).items() if "sssd" in services}
    assert asked == set(members)
    by_name: dict[str, Any] = groups["phase_check"]["hosts"]
    return by_name


def test_a_site_with_a_directory_joins_all_hosts(tmp_path: Path) -> None:
    host = hosts_of(tmp_path, DIRECTORY)["node1"]
    assert host["sssd_local_users"] == ["ops"]
    assert host["ssh_server_keys_command"] == "/etc/ssh/deploy-directory-keys"
    assert host["job_ssh_admin_groups"] == ["sudo", "operators"]
    assert host["ssh_server_admin_groups"] == host["job_programs_kept_groups"] == ["sudo", "operators"]
    assert host["sssd_create_home"] is True
    assert "sssd-ldap" in host["bootstrap_packages"]
    # Its profile has to be kept out of force first (roles/sssd/tasks/main.yml).
    assert "libpam-sss" not in host["bootstrap_packages"]


def test_groups_that_the_site_names_as_admins_are_all_of_them(tmp_path: Path) -> None:
    host = hosts_of(tmp_path, f"{DIRECTORY}job_ssh_admin_groups: [wheel]\n")["node1"]
    assert "job_ssh_admin_groups" not in host
    assert host["ssh_server_admin_groups"] == host["job_programs_kept_groups"] == ["wheel"]


def test_a_site_without_one_has_nothing_of_it(tmp_path: Path) -> None:
    host = hosts_of(tmp_path, "ansible_user: ops\n")["node1"]
    assert not {"sssd_local_users", "ssh_server_keys_command", "job_ssh_admin_groups"} & host.keys()
    assert "sssd-ldap" not in host["bootstrap_packages"]


def test_keys_and_homes_are_made_where_the_site_says(tmp_path: Path) -> None:
    mounts = "nfs_client_mounts: [{path: /home, server: nas.example}]\n"
    for name, text, keys in (
        ("mounted", mounts, "/etc/ssh/deploy-directory-keys"),
        ("elsewhere", "users_create_home: false\nsssd_ssh_keys: false\n", ""),
    ):
        (tmp_path / name).mkdir()
        host = hosts_of(tmp_path / name, DIRECTORY + text)["login1"]
        assert host["sssd_create_home"] is False
        assert host["ssh_server_keys_command"] == keys


def test_what_asks_who_somebody_is_comes_after_it() -> None:
    for phase in ("accounting", "controller", "compute", "job_logins"):
        assert "directory" in prerequisites(phase)

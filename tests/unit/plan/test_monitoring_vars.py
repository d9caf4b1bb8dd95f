from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Template

from deploy.plan.build import build_plan
from deploy.plan.catalog import PHASES
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import Site, read_site
from tests.unit.site.sites import INVENTORY, write_site

MONITORING = {
    "node_exporter",
    "gpu_exporter",
    "mysqld_exporter",
    "probes",
    "monitoring",
    "grafana",
    "targets",
}


def watched_by(tmp_path: Path, *hosts: str, files: dict[str, str] | None = None) -> Site:
    """The usual site, with these hosts below [slurm-metric]."""
    return read_site(write_site(tmp_path, "\n".join([INVENTORY, "[slurm-metric]", *hosts, ""]), files))


def groups(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = generated_inventory(site, build_plan(site), {})["all"]["children"]
    return found


def targets(site: Site) -> dict[str, dict[str, list[str]]]:
    """Job -> instance -> where it is asked."""
    jobs = groups(site)["phase_targets"]["vars"]["scrape_targets_jobs"]
    found: dict[str, dict[str, list[str]]] = {}
    for job, entries in jobs.items():
        for entry in entries:
            found.setdefault(job, {}).setdefault(entry["labels"]["instance"], []).extend(entry["targets"])
    return found


def test_the_controller_watches_where_the_inventory_names_nobody(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    assert [host.name for host in site.metrics] == ["ctl1"]
    assert set(groups(site)["phase_monitoring"]["hosts"]) == {"ctl1"}


def test_an_empty_group_means_no_monitoring(tmp_path: Path) -> None:
    site = watched_by(tmp_path)
    assert site.metrics == ()
    assert {step.phase.name for step in build_plan(site).steps} & MONITORING == set()
    hosts = groups(site)["phase_check"]["hosts"]
    assert not any(name.startswith(("prometheus_", "node_exporter_")) for name in hosts["ctl1"])
    assert [user["name"] for user in hosts["ctl1"]["mariadb_added_users"]] == ["{{ slurmdbd_database_user }}"]


def test_every_phase_of_the_monitoring_is_known_here() -> None:
    assert {phase.name for phase in PHASES} >= MONITORING


def test_whom_prometheus_asks(tmp_path: Path) -> None:
    assert targets(watched_by(tmp_path, "login1")) == {
        "node": {
            "ctl1": ["10.0.0.1:9100"],
            "login1": ["10.0.0.2:9100"],
            "node1": ["10.0.0.11:9100"],
            "node2": ["10.0.0.12:9100"],
        },
        "gpu": {"node1": ["10.0.0.11:9400"], "node2": ["10.0.0.12:9400"]},
        "slurm": {"ctl1": ["10.0.0.1:9341"]},
        "mysqld": {"ctl1": ["10.0.0.1:9104"]},
        "prometheus": {"login1": ["127.0.0.1:9090"]},
        "alertmanager": {"login1": ["127.0.0.1:9093"]},
        "blackbox": {
            "ctl1": ["10.0.0.1:6817", "10.0.0.1:6819"],
            "login1": ["10.0.0.2:22", "http://10.0.0.2:3000/api/health"],
        },
    }


def test_ports_and_addresses_are_those_of_the_host(tmp_path: Path) -> None:
    files = {
        "host_vars/node1.yml": "node_exporter_port: 9999\nhosts_file_address: 'fd00::11'\n",
        "group_vars/slurm-master.yml": (
            "slurmctld_parameters: {SlurmctldPort: 7000-7003}\nslurmdbd_port: 7100\n"
        ),
        "group_vars/slurm-metric.yml": "grafana_source: none\n",
    }
    found = targets(watched_by(tmp_path, "ctl1", files=files))
    assert found["node"]["node1"] == ["[fd00::11]:9999"]
    assert found["blackbox"] == {"ctl1": ["10.0.0.1:7000", "10.0.0.1:7100"], "login1": ["10.0.0.2:22"]}


def test_daemons_listen_in_the_cluster_alone(tmp_path: Path) -> None:
    hosts = groups(watched_by(tmp_path, "login1"))["phase_check"]["hosts"]
    assert hosts["node1"]["node_exporter_listen_address"] == "10.0.0.11"
    assert hosts["node1"]["gpu_exporter_listen_address"] == "10.0.0.11"
    assert "gpu_exporter_listen_address" not in hosts["login1"]
    assert hosts["login1"]["grafana_listen_address"] == "10.0.0.2"
    assert "prometheus_listen_address" not in hosts["node1"]


_ACCOUNTS = "prometheus_web: {basic_auth_users: {a: b}}\nalertmanager_web: '{{ mine }}'\n"


@pytest.mark.parametrize(
    ("variables", "address", "asked"),
    [
        ("", "127.0.0.1", "127.0.0.1"),
        ("prometheus_web: {tls_server_config: {cert_file: /x}}\n", "127.0.0.1", "127.0.0.1"),
        (
            "prometheus_web: {basic_auth_users: {}}\nalertmanager_web: {basic_auth_users: {}}\n",
            "127.0.0.1",
            "127.0.0.1",
        ),
        ("firewall_admin_networks: [192.0.2.0/24]\n", "10.0.0.2", "10.0.0.2"),
        (_ACCOUNTS, "10.0.0.2", "10.0.0.2"),
        ("prometheus_listen_address: ''\nalertmanager_listen_address: ''\n", "", "10.0.0.2"),
    ],
)
def test_pages_that_ask_nobody_who_they_are_are_open_to_their_host_alone(
    tmp_path: Path, variables: str, address: str, asked: str
) -> None:
    site = watched_by(tmp_path, "login1", files={"host_vars/login1.yml": variables})
    host = groups(site)["phase_check"]["hosts"]["login1"]
    # What the site itself says is not wired once more.
    listening = [host.get(f"{role}_listen_address", "") for role in ("prometheus", "alertmanager")]
    assert listening == [address] * 2
    assert host["prometheus_alertmanagers"] == [f"{asked}:9093"]
    assert host["grafana_prometheus_url"].endswith(f"://{asked}:9090")
    assert targets(site)["prometheus"] == {"login1": [f"{asked}:9090"]}
    assert targets(site)["alertmanager"] == {"login1": [f"{asked}:9093"]}


@pytest.mark.parametrize(
    ("variables", "address", "asked"),
    [
        ("", "127.0.0.1", "127.0.0.1"),
        (_ACCOUNTS, "127.0.0.1", "127.0.0.1"),
        ("firewall_admin_networks: [192.0.2.0/24]\n", "10.0.0.2", "10.0.0.2"),
        ("blackbox_exporter_listen_address: 10.0.0.2\n", "10.0.0.2", "10.0.0.2"),
    ],
)
def test_the_program_that_asks_whom_it_is_told_to_obeys_its_own_host_alone(
    tmp_path: Path, variables: str, address: str, asked: str
) -> None:
    site = watched_by(tmp_path, "login1", files={"host_vars/login1.yml": variables})
    made = groups(site)
    # What the site itself says is not wired once more.
    host = made["phase_check"]["hosts"]["login1"]
    assert host.get("blackbox_exporter_listen_address", "10.0.0.2") == address
    jobs = made["phase_targets"]["vars"]["scrape_targets_jobs"]["blackbox"]
    assert {job["labels"]["__exporter"] for job in jobs} == {f"{asked}:9115"}


_OPEN = "prometheus_listen_address: 10.0.0.2\n"


@pytest.mark.parametrize(
    ("variables", "scheme"),
    [
        ("", "http"),
        ("prometheus_web: {basic_auth_users: {a: b}}\n", "http"),
        ("prometheus_web: {tls_server_config: {}}\n", "http"),
        ("prometheus_web: {tls_server_config: {cert_file: /x, key_file: /y}}\n", "https"),
        ("prometheus_web: '{{ site_web }}'\nsite_web: {basic_auth_users: {a: b}}\n", "http"),
        ("prometheus_web: '{{ site_web }}'\nsite_web: {tls_server_config: {cert_file: /x}}\n", "https"),
    ],
)
def test_grafana_asks_prometheus_by_tls_where_its_page_has_a_certificate(
    tmp_path: Path, variables: str, scheme: str
) -> None:
    site = watched_by(tmp_path, "login1", files={"host_vars/login1.yml": _OPEN + variables})
    url = groups(site)["phase_check"]["hosts"]["login1"]["grafana_prometheus_url"]
    # What is a template of the site's is left to Ansible.
    web = yaml.safe_load(variables).get("site_web") if "site_web" in variables else None
    assert Template(url).render(prometheus_web=web) == f"{scheme}://10.0.0.2:9090"


def test_nobody_takes_oneself_for_another_that_watches(tmp_path: Path) -> None:
    assert not {"prometheus", "alertmanager"} & targets(watched_by(tmp_path, "ctl1", "login1")).keys()


def test_a_host_that_is_known_by_name_listens_everywhere(tmp_path: Path) -> None:
    inventory = INVENTORY.replace("node1 ansible_host=10.0.0.11", "node1")
    hosts = groups(read_site(write_site(tmp_path, inventory)))["phase_check"]["hosts"]
    assert hosts["node1"]["node_exporter_listen_address"] == ""


def test_only_who_watches_reaches_exporters_and_admins_the_pages(tmp_path: Path) -> None:
    hosts = groups(watched_by(tmp_path, "login1"))["phase_check"]["hosts"]
    assert hosts["node1"]["firewall_guarded"] == [{"ports": ["9100", "9400"], "from": ["10.0.0.2"]}]
    assert hosts["node1"]["firewall_pages"] == []
    assert hosts["login1"]["firewall_pages"] == ["9093", "9090", "3000"]


def test_a_release_takes_the_place_of_the_package(tmp_path: Path) -> None:
    release = "prometheus_release: {url: 'https://a/b.tar.gz', sha256: '" + "a" * 64 + "'}\n"
    site = watched_by(tmp_path, "ctl1", files={"group_vars/slurm-metric.yml": release})
    assert "prometheus" not in groups(site)["phase_check"]["hosts"]["ctl1"]["bootstrap_packages"]
    assert (
        "prometheus"
        in groups(read_site(write_site(tmp_path)))["phase_check"]["hosts"]["ctl1"]["bootstrap_packages"]
    )

from pathlib import Path
from typing import Any

import pytest

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.plan.requirements import SYSTEMS
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

ROOT = Path(__file__).parents[3]


def expected(directory: Path, host: str, inventory: str = INVENTORY, **files: str) -> dict[str, Any]:
    """What a host is compared with; further files by the name of their group or host."""
    texts = {f"group_vars/{name.replace('_', '-')}.yml": text for name, text in files.items()}
    site = read_site(write_site(directory, inventory, texts))
    base = generated_inventory(site, build_plan(site), {})["all"]["children"]["phase_check"]
    return {**base["vars"]["host_check_site"], **base["hosts"][host]["host_check_host"]}


NUMBERS = ("prometheus-node-exporter", 9100, "tcp")
NUMBERS_OF_GPUS = ("nvitop-exporter", 9400, "tcp")


def ports(expectation: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(port["daemon"], port["port"], port["protocol"]) for port in expectation["ports"]]


def paths(expectation: dict[str, Any]) -> set[str]:
    return {disk["path"] for disk in expectation["disks"]}


def test_a_controller(tmp_path: Path) -> None:
    controller = expected(tmp_path, "ctl1")
    assert ports(controller) == [
        ("slurmctld", 6817, "tcp"),
        ("mariadbd", 3306, "tcp"),
        ("chronyd", 123, "udp"),
        ("slurmdbd", 6819, "tcp"),
        NUMBERS,
        ("python3", 9341, "tcp"),
        ("prometheus-mysqld-exporter", 9104, "tcp"),
        ("prometheus-blackbox-exporter", 9115, "tcp"),
        ("prometheus-alertmanager", 9093, "tcp"),
        ("prometheus", 9090, "tcp"),
        ("grafana", 3000, "tcp"),
    ]
    exporter = next(port for port in controller["ports"] if port["port"] == 9100)
    assert exporter["programs"] == ["prometheus-node-exporter", "prometheus-node"]
    assert {"/var/spool/slurmctld", "/var/lib/mysql", "/usr"} <= paths(controller)
    assert {"slurmctld", "mariadb-server", "munge", "chrony"} <= set(controller["packages"])
    assert (controller["cluster"], controller["controllers"]) == ("cluster", ["ctl1"])
    assert controller["state_location"] == "/var/spool/slurmctld"
    assert controller["hostname"] == "ctl1"
    assert controller["hardware"] == {}


def test_a_compute_node(tmp_path: Path) -> None:
    node = expected(tmp_path, "node2")
    assert ports(node) == [("slurmd", 6818, "tcp"), NUMBERS, NUMBERS_OF_GPUS]
    assert "/var/spool/slurmd" in paths(node)
    assert "/var/lib/mysql" not in paths(node)
    assert node["hardware"] == {"cpus": 4, "memory_mb": 8000, "gpus": [{"type": "a100", "count": 2}]}
    assert (node["hostname"], node["state_location"]) == ("node2", "")
    assert "slurmd" in node["packages"]
    assert "slurmctld" not in node["packages"]


def test_a_login_node_may_call_itself_anything(tmp_path: Path) -> None:
    login = expected(tmp_path, "login1")
    assert (ports(login), login["hostname"], login["cluster"]) == ([NUMBERS], "", "cluster")


def test_a_host_that_keeps_packages_listens_for_the_others(tmp_path: Path) -> None:
    inventory = INVENTORY.replace("[slurm-master]", "[slurm-cache]\nlogin1\n\n[slurm-master]", 1)
    assert ports(expected(tmp_path, "login1", inventory)) == [("apt-cacher-ng", 3142, "tcp"), NUMBERS]


def test_a_host_without_slurm_may_have_another(tmp_path: Path) -> None:
    inventory = INVENTORY.replace("[slurm-master]", "web ansible_host=10.0.0.20\n[slurm-master]", 1)
    inventory += "web\n[slurm-metric]\nweb\n"
    inventory = inventory.replace("slurm-node\nweb", "slurm-node")
    web = expected(tmp_path, "web", inventory)
    assert web["cluster"] == ""
    assert web["packages"] == ["python3-apt", "chrony"]


def test_settings_move_ports_and_directories(tmp_path: Path) -> None:
    variables = """\
slurmctld_cluster_name: big
slurmctld_state_save_location: /srv/state
slurmctld_parameters: {SlurmctldPort: 7000-7001, SlurmdPort: 7010, SlurmdSpoolDir: /srv/spool/%n}
slurmdbd_port: 7020
mariadb_parameters: {port: 7030}
"""
    controller = expected(tmp_path, "ctl1", slurm_master=variables)
    assert [port for _, port, _ in ports(controller)][:5] == [7000, 7001, 7030, 123, 7020]
    assert (controller["cluster"], controller["state_location"]) == ("big", "/srv/state")
    node = expected(tmp_path, "node1", slurm_master=variables)
    assert ports(node) == [("slurmd", 7010, "tcp"), NUMBERS, NUMBERS_OF_GPUS]
    assert "/srv/spool/" in paths(node)


def test_a_port_that_is_a_template_is_not_checked(tmp_path: Path) -> None:
    node = expected(tmp_path, "node1", slurm_master='slurmctld_parameters: {SlurmdPort: "{{ site_port }}"}\n')
    assert ports(node) == [NUMBERS, NUMBERS_OF_GPUS]


@pytest.mark.parametrize(
    ("variables", "hostname"),
    [
        ("slurmd_options: -N node1 -v\n", ""),
        ("slurmd_node_parameters: {NodeHostname: real}\n", "real"),
        ("slurmd_options: -v\n", "node1"),
    ],
)
def test_a_node_may_be_told_its_name(tmp_path: Path, variables: str, hostname: str) -> None:
    hardware = "slurmd_hardware: {cpus: 4, memory_mb: 8000, gpus: []}\n"
    assert expected(tmp_path, "node1", slurm_node=hardware + variables)["hostname"] == hostname


@pytest.mark.parametrize(("options", "steered"), [("-F 1", True), ("-F 1 -x", False)])
def test_who_sets_the_clock(tmp_path: Path, options: str, steered: bool) -> None:  # noqa: FBT001
    clock = expected(tmp_path, "node1", all=f'time_sync_options: "{options}"\n')["clock"]
    assert clock["is_steered"] is steered
    assert clock["warning_seconds"] < clock["error_seconds"] < 5 < clock["munge_seconds"]


def test_names_without_an_address_are_looked_up(tmp_path: Path) -> None:
    inventory = INVENTORY.replace("node1 ansible_host=10.0.0.11", "node1").replace(
        "10.0.0.2\n", "login.site\n"
    )
    assert expected(tmp_path, "ctl1", inventory)["names_to_look_up"] == ["login1", "node1"]


def test_the_systems_are_those_that_the_documentation_names() -> None:
    text = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    for name, versions in SYSTEMS.items():
        for version in versions:
            assert name in text
            assert version in text


@pytest.mark.parametrize(
    ("says", "watched"),
    [
        ("", ["/var/spool/scratch", "/var/tmp"]),
        ("scratch_private_directories: [/tmp, /var/tmp, /dev/shm]", ["/var/spool/scratch"]),
        ("scratch_private_directories: [/dev/shm]", ["/var/spool/scratch", "/tmp", "/var/tmp"]),
        ("scratch_may_fill_root: true", []),
        ("quotas_filesystems: [{path: /, each_user: {space: 10G}}]", []),
        ("quotas_filesystems: [{path: /data, each_user: {space: 10G}}]", ["/var/spool/scratch", "/var/tmp"]),
    ],
)
def test_where_jobs_write_is_watched_unless_the_site_accepts_or_limits_it(
    tmp_path: Path, says: str, watched: list[str]
) -> None:
    assert expected(tmp_path, "ctl1")["scratch"] == []
    settings = f"{says}\nslurmd_hardware: {{cpus: 1, memory_mb: 1000}}\n"
    assert expected(tmp_path, "node1", slurm_node=settings)["scratch"] == watched

"""What a rehearsal takes of a site, and that nothing of the site's machines is reached by it."""

from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.errors import DeployError
from deploy.lab.directory import LabDirectory
from deploy.lab.reach import addresses_in, refuse_other_machines, refuse_others
from deploy.lab.rehearsal import modules_of, stand_ins
from deploy.lab.rehearsed_site import MODULES, Rehearsed, inventory, rehearsed, vaulted, write
from deploy.run.ssh import Login, command
from deploy.site.inventory import Host, Site, read_site
from deploy.site.user_commands import read_user_commands
from tests.unit.lab.test_labs import lab_of

NETWORK = IPv4Network("10.213.7.0/24")
SITES = Path(__file__).parents[3] / "inventory" / "sites"
HOSTILE: dict[str, Any] = {
    "ansible_host": "192.0.2.1",
    "ansible_port": 2222,
    "ansible_user": "root",
    "ansible_password": "secret",
    "ansible_become_password": "secret",
    "ansible_connection": "ssh",
    "ansible_ssh_common_args": "-J jump.site.example",
    "ansible_ssh_extra_args": "-o ProxyCommand='nc jump.site.example 22'",
    "ansible_ssh_executable": "/site/ssh",
    "ansible_ssh_private_key_file": "/site/key",
    "nfs_client_mounts": [{"server": "192.0.2.9"}],
    "network_mounts_filesystems": [{"servers": ["192.0.2.9"]}],
    "time_sync_servers": ["192.0.2.9"],
    "proxy_http": "http://192.0.2.9:3128",
    "hosts_file_address": "192.0.2.1",
    "munge_key": "secret",
    "firewall_admin_networks": ["192.0.2.0/24"],
}


def site_of(**groups: list[Host]) -> Site:
    members = {name.replace("_", "-"): tuple(host.name for host in hosts) for name, hosts in groups.items()}
    hosts = {host.name: host for listed in groups.values() for host in listed}
    return Site(Path("/sites/mine/inventory.ini"), hosts, members)


def host(name: str, *groups: str, **variables: Any) -> Host:  # noqa: ANN401
    return Host(name, {**HOSTILE, **variables}, frozenset(groups))


CONTROLLER = host("ctl", "slurm-master")
NODES = [host(f"n{number}", "slurm-node", "a100") for number in range(1, 5)]
SITE = site_of(slurm_master=[CONTROLLER], slurm_node=NODES, a100=NODES, slurm_nfs=[CONTROLLER])


def content(what: Rehearsed) -> dict[str, Any]:
    addresses = {host.name: NETWORK[2 + index] for index, host in enumerate(what.hosts)}
    made: dict[str, Any] = inventory(what, addresses, NETWORK, release="bookworm", cgroup_v1=True)["all"]
    return made


def test_a_site_is_scaled_down_by_the_kinds_of_its_hosts() -> None:
    what = rehearsed(SITE, ["/home/", "/u", "/u/work"], most=2, gpus=1)
    assert [host.name for host in what.hosts] == ["ctl", "n1", "n2"]
    assert what.left_out == ("n3", "n4")
    assert what.shared == ("/home", "/u")
    assert content(what)["children"]["a100"] == {"hosts": {"n1": None, "n2": None}}


def test_a_partition_that_names_its_nodes_keeps_one() -> None:
    partitions = [{"name": "one", "nodes": ["n[1-3]"]}, {"name": "two", "nodes": ["n4"]}]
    controller = host("ctl", "slurm-master", slurmctld_partitions=partitions)
    what = rehearsed(site_of(slurm_master=[controller], slurm_node=NODES), [], most=1, gpus=1)
    assert [host.name for host in what.hosts] == ["ctl", "n1", "n4"]
    written = content(what)["hosts"]["ctl"]["slurmctld_partitions"]
    assert [entry["nodes"] for entry in written] == [["n1"], ["n4"]]


def test_gpus_are_those_that_the_site_declares() -> None:
    declared = host("a", "slurm-node", slurmd_hardware={"cpus": 64, "gpus": [{"type": "a40", "count": 8}]})
    without = host("b", "slurm-node", slurmd_hardware={"gpus": []})
    unknown = host("c", "slurm-node")
    site = site_of(slurm_master=[CONTROLLER], slurm_node=[declared, without, unknown])
    what = rehearsed(site, [], most=4, gpus=3)
    assert what.gpus == {"a": 8, "b": 0, "c": 3}
    hardware = {name: told.get("slurmd_hardware") for name, told in content(what)["hosts"].items()}
    assert hardware["a"] == {"memory_mb": 1024, "gpus": [{"type": "a40", "count": 8}]}
    assert hardware["c"] == {"memory_mb": 1024}


def test_variables_stay_but_for_what_containers_cannot_do() -> None:
    controller = host(
        "ctl",
        "slurm-master",
        slurmctld_cluster_name="mine",
        motd_help="{{ inventory_dir }}/help",
        slurmctld_cgroup_parameters={"AllowedRAMSpace": "99"},
        environment_modules_shared=["/home/software"],
    )
    told = content(rehearsed(site_of(slurm_master=[controller], slurm_node=NODES), [], most=1, gpus=1))
    said = told["hosts"]["ctl"]
    assert said["slurmctld_cluster_name"] == "mine"
    assert said["motd_help"] == "{{ '/sites/mine' }}/help"
    assert said["environment_modules_shared"] == ["/home/software", MODULES]
    assert said["slurmctld_cgroup_parameters"] == {
        "AllowedRAMSpace": "99",
        "CgroupPlugin": "cgroup/v1",
        "CgroupAutomount": "no",
    }
    assert (said["users_create_home"], told["hosts"]["n1"]["users_create_home"]) == (True, False)
    assert said["firewall_admin_networks"] == ["10.213.7.0/24"]


def test_nothing_says_how_the_machines_of_the_site_are_reached() -> None:
    told = content(rehearsed(SITE, [], most=4, gpus=1))
    assert "192.0.2." not in str(told)
    assert "jump" not in str(told)
    assert "secret" not in str(told)
    assert "slurm-nfs" not in told["children"]


@pytest.mark.usefixtures("quick_reading")
def test_by_the_written_inventory_only_the_lab_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = rehearsed(SITE, [], most=1, gpus=1)
    path = tmp_path / "inventory.yml"
    write(path, {"all": content(what)})
    assert path.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("ANSIBLE_SSH_ARGS", "-J jump.site.example")
    site = refuse_others(path, NETWORK)
    for machine in site.hosts.values():
        words = command(machine, Login(environment={"ANSIBLE_SSH_ARGS": "-J jump.site.example"}))
        assert words[words.index("--") + 1].startswith("10.213.7.")
        assert words[words.index("-F") + 1] == "none"
        assert "-J" not in words


@pytest.mark.usefixtures("quick_reading")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"ansible_host": "192.0.2.1"}, "ctl is at 192.0.2.1"),
        ({"ansible_host": "ctl.site.example"}, "ctl is at ctl.site.example"),
        ({"ansible_connection": "local"}, "ctl has ansible_connection"),
        ({"ansible_port": 2222}, "ctl has ansible_port"),
    ],
)
def test_an_inventory_that_reaches_elsewhere_is_refused(
    wrong: dict[str, Any], said: str, tmp_path: Path
) -> None:
    told = content(rehearsed(SITE, [], most=1, gpus=1))
    told["hosts"]["ctl"] |= wrong
    write(tmp_path / "inventory.yml", {"all": told})
    with pytest.raises(DeployError, match=rf"{said}.*\[rehearsal-not-apart\]"):
        refuse_others(tmp_path / "inventory.yml", NETWORK)


@pytest.mark.usefixtures("quick_reading")
def test_only_machines_of_the_lab_are_deployed_on(tmp_path: Path) -> None:
    directory = LabDirectory(tmp_path)
    machines = {"ctl1": "10.213.7.2", "login1": "10.213.7.3", "node1": "10.213.7.11"}
    directory.write(machines, release="trixie", gpus=2, cgroup_v1=False)
    refuse_other_machines(directory.inventory, lab_of(("ctl1", "running")))
    text = directory.inventory.read_text()
    directory.inventory.write_text(text.replace("10.213.7.2", "192.0.2.1"))
    with pytest.raises(DeployError, match=r"ctl1 is at 192\.0\.2\.1.*\[lab-other-machines\]"):
        refuse_other_machines(directory.inventory, lab_of(("ctl1", "running")))


def test_the_lab_is_kept_from_the_addresses_of_the_site() -> None:
    hosts = [
        Host(
            "ctl",
            {"hosts_file_address": "10.213.10.2"},
            frozenset(),
            connection={"ansible_host": "10.213.9.2"},
        ),
        Host("node.site.example", {}, frozenset()),
    ]
    assert addresses_in(site_of(slurm_master=hosts)) == (
        IPv4Network("10.213.9.2"),
        IPv4Network("10.213.10.2"),
    )


def test_what_is_in_the_vault_is_named_and_left_out() -> None:
    controller = host("ctl", "slurm-master", motd_help={"__ansible_vault": "x"})
    what = rehearsed(site_of(slurm_master=[controller], slurm_node=NODES), [], most=1, gpus=1)
    assert vaulted(what) == ["motd_help"]
    assert "motd_help" not in content(what)["hosts"]["ctl"]


def test_stand_ins_for_modules() -> None:
    node = host("n", "slurm-node", site_modules=["python", "gcc/13"], cuda_toolkit_versions=["12.6"])
    what = rehearsed(site_of(slurm_master=[CONTROLLER], slurm_node=[node]), [], most=1, gpus=1)
    assert modules_of(what) == ["python", "gcc/13", "cuda/12.6"]
    entries = {entry.path: entry for entry in stand_ins(modules_of(what))}
    assert entries[f"{MODULES}/gcc/13"].text == "#%Module1.0\n"
    assert entries[f"{MODULES}/python"].text == "#%Module1.0\nprepend-path PATH /home/rehearsal/bin\n"
    assert entries["/home/rehearsal/bin/python"].link == "/usr/bin/python3"


@pytest.mark.usefixtures("quick_reading")
@pytest.mark.parametrize("name", sorted(path.name for path in SITES.iterdir()))
def test_the_example_sites_can_be_rehearsed(name: str, tmp_path: Path) -> None:
    site = read_site(SITES / name / "inventory.ini")
    shared = read_user_commands(SITES / name / "user-commands.yml")["shared"]
    what = rehearsed(site, shared, most=2, gpus=1)
    assert what.left_out == ()
    write(tmp_path / "inventory.yml", {"all": content(what)})
    copy = refuse_others(tmp_path / "inventory.yml", NETWORK)
    assert [h.name for h in copy.cluster] == [h.name for h in site.cluster]
    assert {g for g in site.groups if g not in ("all", "ungrouped")} == set(copy.groups) - {
        "all",
        "ungrouped",
    }
    assert yaml.safe_load((tmp_path / "inventory.yml").read_text())

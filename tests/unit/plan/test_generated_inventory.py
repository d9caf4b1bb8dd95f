import json
import re
from pathlib import Path
from typing import Any

import pytest

from deploy.plan.build import build_plan
from deploy.plan.catalog import PHASES
from deploy.plan.generated_inventory import generated_inventory, wired_variables, write_discovery
from deploy.site.inventory import Site, read_site
from deploy.site.schema import options
from tests.unit.site.sites import INVENTORY, write_site

PARTITIONS = """\
slurmctld_partitions:
  - {name: gpu, groups: [slurm-node], default: true}
  - {name: one, nodes: [node2]}
  - {name: rest}
"""


def wired(site: Site, limit: set[str] | None = None) -> dict[str, Any]:
    groups: dict[str, Any] = generated_inventory(site, build_plan(site, limit=limit), {})["all"]["children"]
    return groups


def test_phases_and_their_hosts(tmp_path: Path) -> None:
    plan = build_plan(read_site(write_site(tmp_path)))
    assert {step.phase.name: step.hosts for step in plan.steps} == {
        "base": ("ctl1", "login1", "node1", "node2"),
        "names": ("ctl1", "login1", "node1", "node2"),
        "node_health": ("node1", "node2"),
        "scratch": ("node1", "node2"),
        "database": ("ctl1",),
        "packages": ("ctl1", "login1", "node1", "node2"),
        "accounting": ("ctl1",),
        "qos": ("ctl1",),
        "controller": ("ctl1",),
        "associations": ("ctl1",),
        "reservations": ("ctl1",),
        "gpu": ("node1", "node2"),
        "compute": ("node1", "node2"),
        "login": ("login1",),
        "software": ("ctl1", "login1", "node1", "node2"),
        "ssh_server": ("ctl1", "login1", "node1", "node2"),
        "ssh_hosts": ("node1", "node2"),
        "job_logins": ("ctl1", "login1", "node1", "node2"),
        "user_logins": ("login1",),
        "message": ("login1",),
        "node_exporter": ("ctl1", "login1", "node1", "node2"),
        "gpu_exporter": ("node1", "node2"),
        "slurm_metrics": ("ctl1",),
        "mysqld_exporter": ("ctl1",),
        "probes": ("ctl1",),
        "monitoring": ("ctl1",),
        "targets": ("ctl1",),
        "grafana": ("ctl1",),
    }


def test_a_limited_run_adds_only_the_controllers_node_list(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    plan = build_plan(site, limit={"node2"})
    assert {step.phase.name: step.hosts for step in plan.steps} == {
        "base": ("node2",),
        "names": ("node2",),
        "node_health": ("node2",),
        "scratch": ("node2",),
        "packages": ("node2",),
        "controller": ("ctl1",),
        "gpu": ("node2",),
        "compute": ("node2",),
        "software": ("node2",),
        "ssh_server": ("node2",),
        "ssh_hosts": ("node2",),
        "job_logins": ("node2",),
        "node_exporter": ("node2",),
        "gpu_exporter": ("node2",),
        "targets": ("ctl1",),
    }
    full, limited = wired(site)["phase_controller"], wired(site, {"node2"})["phase_controller"]
    assert full["vars"] == limited["vars"]
    assert wired(site, {"node2"})["phase_login"]["hosts"] == {}


def test_partitions_by_group_by_node_and_by_default(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, files={"group_vars/all.yml": PARTITIONS}))
    nodes = dict(wired(site)["phase_controller"]["vars"]["slurmctld_partition_nodes"])
    assert nodes.pop("deploy-validate") == {"nodes": "node[1-2]", "memory_per_cpu_mb": 2000}
    assert nodes == {
        "gpu": {"nodes": "node[1-2]", "memory_per_cpu_mb": 2000},
        "one": {"nodes": "node2", "memory_per_cpu_mb": 2000},
        "rest": {"nodes": "node[1-2]", "memory_per_cpu_mb": 2000},
    }


def test_the_default_partition_is_wired_too(tmp_path: Path) -> None:
    nodes = wired(read_site(write_site(tmp_path)))["phase_controller"]["vars"]["slurmctld_partition_nodes"]
    assert nodes["batch"] == {"nodes": "node[1-2]", "memory_per_cpu_mb": 2000}


def test_the_user_of_validations_has_an_account_a_qos_and_a_hidden_partition(tmp_path: Path) -> None:
    phases = wired(read_site(write_site(tmp_path)))
    variables = phases["phase_associations"]["vars"]
    name = "deploy-validate"
    assert [qos["name"] for qos in variables["slurm_accounts_added_qos"]] == [name]
    assert variables["slurm_accounts_added_users"][0]["accounts"] == [name]
    (partition,) = phases["phase_controller"]["vars"]["slurmctld_added_partitions"]
    assert partition["allow_accounts"] == [name]
    assert partition["parameters"] == {"Hidden": "YES"}


def test_a_site_may_want_no_user_of_validations(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path, files={"group_vars/all.yml": "users_validation: {}\n"}))
    phases = wired(site)
    assert "slurm_accounts_added_users" not in phases["phase_associations"]["vars"]
    assert phases["phase_controller"]["vars"]["slurmctld_added_partitions"] == []


def test_a_node_without_a_contract_is_left_out_of_slurm(tmp_path: Path) -> None:
    files = {
        "group_vars/slurm-node.yml": "slurmd_weight: 1\n",
        "host_vars/node1.yml": "slurmd_hardware: {cpus: 2, memory_mb: 100, gpus: []}\n",
    }
    variables = wired(read_site(write_site(tmp_path, files=files)))["phase_controller"]["vars"]
    assert [node["name"] for node in variables["slurmctld_nodes"]] == ["node1"]
    assert variables["slurmctld_partition_nodes"]["batch"]["nodes"] == "node1"


def test_what_the_admin_sets_is_not_overridden(tmp_path: Path) -> None:
    files = {"group_vars/all.yml": "time_sync_servers: [ntp.site]\n"}
    hosts = wired(read_site(write_site(tmp_path, files=files)))["phase_check"]["hosts"]
    assert "time_sync_servers" not in hosts["node1"]
    assert hosts["ctl1"]["time_sync_allow"] == ["10.0.0.0/24"]


def test_an_inner_address_without_a_value_is_none(tmp_path: Path) -> None:
    files = {
        "group_vars/all.yml": "hosts_file_address:\n",
        "host_vars/node2.yml": "hosts_file_address: 10.1.0.2\n",
    }
    variables = wired(read_site(write_site(tmp_path, files=files)))["phase_controller"]["vars"]
    assert [node["address"] for node in variables["slurmctld_nodes"]] == ["10.0.0.11", "10.1.0.2"]


def test_components_follow_the_groups(tmp_path: Path) -> None:
    hosts = wired(read_site(write_site(tmp_path)))["phase_check"]["hosts"]
    assert hosts["ctl1"]["slurm_packages_components"] == ["slurmdbd", "slurmctld", "slurm-client"]
    assert hosts["node1"]["slurm_packages_components"] == ["slurmd", "slurm-client"]
    assert hosts["login1"]["slurm_packages_components"] == ["sackd", "slurm-client"]


def test_the_database_user_joins_the_admins_own(tmp_path: Path) -> None:
    other = "mariadb_users: [{name: other, password: abcdefghijklmnopq, privileges: '*.*:ALL'}]\n"
    files = {"host_vars/ctl1.yml": other}
    host = wired(read_site(write_site(tmp_path, files=files)))["phase_check"]["hosts"]["ctl1"]
    assert [user["name"] for user in host["mariadb_added_users"]] == [
        "{{ slurmdbd_database_user }}",
        "prometheus",
    ]
    assert "mariadb_users" not in host


@pytest.mark.parametrize(
    ("said", "hidden"),
    [
        ("", []),
        ("slurmctld_private_data: [jobs, nodes, users]\n", ["jobs", "users"]),
        ("slurmctld_private_data: [jobs]\nslurmdbd_private_data: [events]\n", None),
    ],
)
def test_the_database_hides_what_the_controller_hides(
    tmp_path: Path, said: str, hidden: list[str] | None
) -> None:
    site = read_site(write_site(tmp_path, files={"group_vars/all.yml": said}))
    assert wired(site)["phase_check"]["hosts"]["ctl1"].get("slurmdbd_private_data") == hidden


def test_the_address_in_the_cluster_may_differ_from_ansibles(tmp_path: Path) -> None:
    inventory = INVENTORY.replace(
        "node1 ansible_host=10.0.0.11", "node1 ansible_host=gate hosts_file_address=10.9.9.9"
    )
    groups = wired(read_site(write_site(tmp_path, inventory)))
    assert groups["phase_controller"]["vars"]["slurmctld_nodes"][0]["address"] == "10.9.9.9"
    assert {"address": "10.9.9.9", "names": ["node1"]} in groups["phase_names"]["vars"]["hosts_file_entries"]


def test_the_account_that_ansible_connects_with_is_known_to_the_roles_that_could_shut_it_out(
    tmp_path: Path,
) -> None:
    files = {
        "group_vars/all.yml": "ansible_user: ops\n",
        "host_vars/node2.yml": 'ansible_user: "{{ site_user }}"\nsite_user: me\n',
    }
    hosts = wired(read_site(write_site(tmp_path, files=files)))["phase_check"]["hosts"]
    assert hosts["node1"]["job_ssh_connecting_user"] == "ops"
    assert hosts["login1"]["login_limits_connecting_user"] == "ops"
    assert hosts["node1"]["ssh_server_connecting_user"] == "ops"
    assert "job_ssh_connecting_user" not in hosts["node2"]


def test_users_enter_login_nodes_and_nodes_with_their_jobs_and_what_the_site_opens(tmp_path: Path) -> None:
    files = {"host_vars/node2.yml": "job_ssh_admits: everyone\n"}
    groups = wired(read_site(write_site(tmp_path, files=files)))
    assert set(groups["phase_job_logins"]["hosts"]) == {"ctl1", "login1", "node1", "node2"}
    is_login = {name: host["job_ssh_is_login"] for name, host in groups["phase_check"]["hosts"].items()}
    assert is_login == {"ctl1": False, "login1": True, "node1": False, "node2": False}
    by_job = {name: host["ssh_server_only_by_job"] for name, host in groups["phase_check"]["hosts"].items()}
    assert by_job == {"ctl1": False, "login1": False, "node1": True, "node2": False}
    assert set(groups["phase_user_limits"]["hosts"]) == {"node2"}
    assert set(groups["phase_user_logins"]["hosts"]) == {"login1"}
    has_jobs = {name: host["job_ssh_has_jobs"] for name, host in groups["phase_check"]["hosts"].items()}
    assert has_jobs == {"ctl1": False, "login1": False, "node1": True, "node2": True}


def test_logins_by_job_know_the_name_that_slurmd_is_told(tmp_path: Path) -> None:
    """A template is known on the host only."""
    files = {
        "host_vars/node1.yml": 'slurmd_options: "-v -N {{ inventory_hostname }} -M"\n',
        "host_vars/node2.yml": "slurmd_options: -Nnode2\n",
        "host_vars/login1.yml": "slurmd_options: -N login1\n",
    }
    hosts = wired(read_site(write_site(tmp_path, files=files)))["phase_check"]["hosts"]
    names = {name: host["job_ssh_node_name"] for name, host in hosts.items()}
    told = {"node1": "{{ inventory_hostname }}", "node2": "node2"}
    assert names == {"ctl1": "", "login1": "", **told}


def test_where_no_host_is_a_login_node_users_enter_the_controller(tmp_path: Path) -> None:
    inventory = "[slurm-master]\nctl1\n[slurm-node]\nnode1\n"
    site = read_site(write_site(tmp_path, inventory))
    plan = {step.phase.name: step.hosts for step in build_plan(site).steps}
    assert plan["user_logins"] == ("ctl1",)
    hosts = wired(site)["phase_check"]["hosts"]
    assert [name for name, host in hosts.items() if host["job_ssh_is_login"]] == ["ctl1"]


def test_hosts_that_have_mpi_are_those_that_declare_it(tmp_path: Path) -> None:
    assert wired(read_site(write_site(tmp_path)))["phase_mpi"]["hosts"] == {}
    files = {"group_vars/all.yml": "openmpi_packages: [openmpi-bin]\n"}
    groups = wired(read_site(write_site(tmp_path, files=files)))
    assert set(groups["phase_mpi"]["hosts"]) == {"ctl1", "login1", "node1", "node2"}
    hosts = groups["phase_check"]["hosts"]
    assert [hosts[name]["openmpi_slurm_daemons"] for name in ("node1",)] == [["slurmd"]]
    assert "openmpi-bin" in hosts["ctl1"]["bootstrap_packages"]


def test_nodes_check_themselves_unless_the_site_says_otherwise(tmp_path: Path) -> None:
    hosts = wired(read_site(write_site(tmp_path)))["phase_check"]["hosts"]
    assert hosts["ctl1"]["slurmctld_health_check_program"] == "/usr/local/sbin/node_health"
    assert hosts["node1"]["node_health_contract"]["gpus"] == [{"type": "a100", "count": 2}]
    files = {"group_vars/all.yml": "slurmctld_health_check_program: /opt/nhc\n"}
    hosts = wired(read_site(write_site(tmp_path, files=files)))["phase_check"]["hosts"]
    assert "slurmctld_health_check_program" not in hosts["ctl1"]


def test_the_first_login_node_builds_environments_and_all_hosts_search_them(tmp_path: Path) -> None:
    stack = "ml_stack_environments: [{name: torch, version: '2', requirements: [torch==2.9.1]}]\n"
    # nvitop-exporter's environment and people need the same package.
    settings = (
        f"{stack}ml_stack_directory: /software/ml\ngpu_exporter_source: none\nuser_environment_packages: []\n"
    )
    files = {"group_vars/all.yml": settings}
    groups = wired(read_site(write_site(tmp_path, files=files)))
    hosts = groups["phase_check"]["hosts"]
    assert {name for name, host in hosts.items() if host["ml_stack_builds"]} == {"login1"}
    users = [hosts["login1"], hosts["node2"]]
    trees = {tuple(host["environment_modules_trees"]) for host in users}
    assert trees == {("/software/ml/modulefiles",)}
    assert "python3-venv" in hosts["login1"]["bootstrap_packages"]
    assert "python3-venv" not in hosts["node1"]["bootstrap_packages"]
    assert set(groups["phase_ml_stack"]["hosts"]) == {"login1", "node1", "node2"}


def test_a_job_has_its_scratch_where_the_node_declares_it(tmp_path: Path) -> None:
    files = {
        "host_vars/node2.yml": "scratch_directory: /local\nscratch_private_directories: [/tmp, /var/tmp]\n"
    }
    groups = wired(read_site(write_site(tmp_path, files=files)))
    first, second = groups["phase_controller"]["vars"]["slurmctld_nodes"]
    assert first["scratch"] == {"directory": "/var/spool/scratch"}
    assert second["scratch"] == {"directory": "/local", "private": ["/tmp", "/var/tmp"]}
    assert groups["phase_check"]["hosts"]["node2"]["slurmd_required_mounts"] == ["/local", "/tmp", "/var/tmp"]


def test_the_firewall_is_where_somebody_is_named_who_comes_in(tmp_path: Path) -> None:
    files = {"group_vars/slurm-login.yml": "firewall_admin_networks: [192.0.2.0/24]\nansible_port: 2222\n"}
    site = read_site(write_site(tmp_path, files=files))
    groups = wired(site)
    assert list(groups["phase_firewall"]["hosts"]) == ["login1"]
    assert groups["phase_firewall"]["vars"]["firewall_peers"] == [
        "10.0.0.1",
        "10.0.0.11",
        "10.0.0.12",
        "10.0.0.2",
    ]
    login, node = (groups["phase_check"]["hosts"][name] for name in ("login1", "node1"))
    assert (login["firewall_lets_users_in"], login["firewall_ssh_ports"]) == (True, [22, 2222])
    assert (node["firewall_lets_users_in"], node["firewall_ssh_ports"]) == (False, [22])


def test_what_comes_by_a_nat_has_no_rights_of_the_hosts_behind_it(tmp_path: Path) -> None:
    """Ansible reaches two hosts by the address of a NAT, by which anything else can come, too."""
    inventory = INVENTORY.replace(
        "[slurm-cluster:children]",
        "[slurm-log]\nctl1\n[slurm-metric]\nlogin1\n[slurm-cluster:children]",
    )
    behind = "ansible_host: 192.0.2.1\nansible_port: {}\nhosts_file_address: 10.0.0.{}\n"
    files = {
        "group_vars/all.yml": "firewall_admin_networks: [198.51.100.0/24]\n",
        "host_vars/ctl1.yml": behind.format(2201, 1),
        "host_vars/login1.yml": behind.format(2202, 2),
    }
    groups = wired(read_site(write_site(tmp_path, inventory, files)))
    assert groups["phase_firewall"]["vars"]["firewall_peers"] == [
        "10.0.0.1",
        "10.0.0.11",
        "10.0.0.12",
        "10.0.0.2",
    ]
    guarded = [one for host in groups["phase_check"]["hosts"].values() for one in host["firewall_guarded"]]
    assert {address for one in guarded for address in one["from"]} == {"10.0.0.2"}
    assert groups["phase_log_server"]["vars"]["log_server_names"] == {
        "10.0.0.1": "ctl1",
        "10.0.0.2": "login1",
        "10.0.0.11": "node1",
        "10.0.0.12": "node2",
    }


def test_the_message_knows_the_partitions(tmp_path: Path) -> None:
    files = {
        "group_vars/all.yml": PARTITIONS,
        "host_vars/node2.yml": "slurmd_hardware: {cpus: 8, memory_mb: 16384, gpus: []}\n",
    }
    variables = wired(read_site(write_site(tmp_path, files=files)))["phase_message"]["vars"]
    assert variables["motd_partitions"] == [
        {"name": "gpu*", "nodes": "node[1-2]", "has": "4-8 CPUs, 8-16 GiB, 2 a100", "longest": "no limit"},
        {"name": "one", "nodes": "node2", "has": "8 CPUs, 16 GiB", "longest": "no limit"},
        {"name": "rest", "nodes": "node[1-2]", "has": "4-8 CPUs, 8-16 GiB, 2 a100", "longest": "no limit"},
    ]


def test_the_cluster_is_reached_without_the_proxy(tmp_path: Path) -> None:
    files = {"group_vars/slurm-node.yml": "proxy_http: http://ops:word@proxy.example:3128\n"}
    groups = wired(read_site(write_site(tmp_path, files=files)))
    assert list(groups["phase_proxy"]["hosts"]) == ["node1", "node2"]
    names = ["ctl1", "login1", "node1", "node2"]
    assert groups["phase_proxy"]["vars"]["proxy_direct"] == [*names, "10.0.0.1", "10.0.0.2", "10.0.0.0/24"]
    expected = groups["phase_check"]["hosts"]["node1"]["host_check_host"]["apt_options"]
    assert expected == 'Acquire::http::Proxy "http://proxy.example:3128";\n'


def test_no_proxy_of_a_large_cluster_is_read_by_pam(tmp_path: Path) -> None:
    """pam_env of Debian 12 ends at a line beyond 8192 bytes, and leaves out what follows, too."""
    inventory = INVENTORY.replace(
        "node2 ansible_host=10.0.0.12", "gpu-node[0001:1000]\ngpu-node0001 ansible_host=10.0.0.13"
    ).replace("node[1:2]", "node1\ngpu-node[0001:1000]\n\n[slurm-cache]\ngpu-node0001")
    files = {"group_vars/all.yml": "proxy_http: http://proxy.example:3128\n"}
    told = wired(read_site(write_site(tmp_path, inventory, files)))["phase_proxy"]["vars"]["proxy_direct"]
    assert told == ["ctl1", "login1", "gpu-node0001", "10.0.0.1", "10.0.0.2", "10.0.0.0/24"]


def test_without_a_proxy_a_new_host_concerns_no_other_there(tmp_path: Path) -> None:
    files = {"group_vars/slurm-node.yml": 'proxy_http: ""\n'}
    groups = wired(read_site(write_site(tmp_path, files=files)))
    assert groups["phase_proxy"] == {
        "hosts": {"node1": None, "node2": None},
        "vars": {"proxy_direct": [], "proxy_package_caches": []},
    }


def test_who_only_keeps_a_list_is_not_checked_once_more(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    done = {phase.name for phase in PHASES if not phase.follows_membership}
    plan = build_plan(site, converged={"ctl1": done, "login1": done, "node1": done})
    assert (plan.hosts, plan.checked) == (("node2", "ctl1", "login1", "node1"), ("node2",))
    groups = generated_inventory(site, plan, {})["all"]["children"]
    assert [*groups["phase_names"]["hosts"]] == ["ctl1", "login1", "node1", "node2"]
    assert [*groups["phase_check"]["hosts"]] == ["node2", "ctl1"]


def test_nodes_of_an_earlier_run_are_not_asked_with_new_ones(tmp_path: Path) -> None:
    site = read_site(write_site(tmp_path))
    source = tmp_path / "discover.json"
    contract = {"node1": {"cpus": 4, "memory_mb": 4096}}
    write_discovery(source, site, build_plan(site), contract, [site.hosts["node2"]])
    groups = json.loads(source.read_text())["all"]["children"]
    assert [*groups["phase_discover"]["hosts"]] == ["node2"]
    assert [*groups["phase_check"]["hosts"]] == ["ctl1", "login1", "node2"]


def test_logs_go_to_the_host_that_keeps_them(tmp_path: Path) -> None:
    inventory = INVENTORY.replace(
        "[slurm-cluster:children]", "[slurm-log]\nlogin1\n\n[slurm-cluster:children]"
    )
    files = {"host_vars/login1.yml": "log_server_port: 514\n"}
    groups = wired(read_site(write_site(tmp_path, inventory, files)))
    assert list(groups["phase_log_server"]["hosts"]) == ["login1"]
    assert groups["phase_log_server"]["vars"] == {
        "log_server_senders": ["10.0.0.0/24"],
        "log_server_names": {
            "10.0.0.1": "ctl1",
            "10.0.0.2": "login1",
            "10.0.0.11": "node1",
            "10.0.0.12": "node2",
        },
    }
    assert list(groups["phase_log_client"]["hosts"]) == ["ctl1", "login1", "node1", "node2"]
    assert groups["phase_log_client"]["vars"] == {
        "log_client_server": "10.0.0.2",
        "log_client_server_name": "login1",
        "log_client_port": 514,
    }


def test_packages_come_through_the_hosts_that_keep_them(tmp_path: Path) -> None:
    inventory = INVENTORY.replace(
        "[slurm-cluster:children]", "[slurm-cache]\nlogin1\nnode1\n\n[slurm-cluster:children]"
    )
    files = {
        "host_vars/login1.yml": "package_cache_port: 3143\n",
        "host_vars/node1.yml": "proxy_http: http://proxy.example:3128\n",
        "group_vars/all.yml": (
            "bootstrap_archive: http://10.0.0.5:8000/packages\n"
            "slurm_packages_repository: {uri: 'http://mirror.example:8081/slurm'}\n"
            "nvidia_repository_cuda_uri: https://mirror.example:8443/cuda\n"
            "grafana_repository_uri: 'http://mirror.example:{{ port }}/grafana'\n"
            "port: 8082\n"
        ),
    }
    groups = wired(read_site(write_site(tmp_path, inventory, files)))
    assert list(groups["phase_proxy"]["hosts"]) == ["ctl1", "login1", "node1", "node2"]
    assert groups["phase_proxy"]["vars"]["proxy_package_caches"] == [
        "http://10.0.0.2:3143",
        "http://10.0.0.11:3142",
    ]
    assert list(groups["phase_package_cache"]["hosts"]) == ["login1", "node1"]
    assert groups["phase_package_cache"]["vars"] == {"package_cache_clients": ["10.0.0.0/24"]}
    login, node = (groups["phase_check"]["hosts"][name] for name in ("login1", "node1"))
    assert login["package_cache_listen_address"] == "10.0.0.2"
    # Elsewhere it would be a way to what else listens on hosts that the cache reaches.
    assert login["package_cache_ports"] == [80, 8000, 8081]
    assert node["package_cache_upstream_proxy"] == "{{ proxy_http }}"
    assert "package_cache_listen_address" not in groups["phase_check"]["hosts"]["node2"]


def test_the_time_is_for_hosts_that_are_known_by_name_too(tmp_path: Path) -> None:
    """chrony answers nobody whom it is not told of; networks that are known stay the only ones."""
    everybody = ["0.0.0.0/0", "::/0"]
    some = INVENTORY.replace("node1 ansible_host=10.0.0.11", "node1")
    hosts = wired(read_site(write_site(tmp_path, some)))["phase_check"]["hosts"]
    assert hosts["ctl1"]["time_sync_allow"] == ["10.0.0.0/24"]
    names = re.sub(" ansible_host=.*", "", INVENTORY)
    hosts = wired(read_site(write_site(tmp_path, names)))["phase_check"]["hosts"]
    assert hosts["ctl1"]["time_sync_allow"] == everybody


def test_without_the_group_nobody_looks_for_a_cache(tmp_path: Path) -> None:
    groups = wired(read_site(write_site(tmp_path)))
    assert list(groups["phase_proxy"]["hosts"]) == []


def test_an_empty_group_takes_the_cache_away_everywhere(tmp_path: Path) -> None:
    inventory = INVENTORY.replace("[slurm-cluster:children]", "[slurm-cache]\n\n[slurm-cluster:children]")
    groups = wired(read_site(write_site(tmp_path, inventory)))
    assert list(groups["phase_proxy"]["hosts"]) == ["ctl1", "login1", "node1", "node2"]
    assert groups["phase_proxy"]["vars"]["proxy_package_caches"] == []


def test_people_find_what_they_need_where_they_work(tmp_path: Path) -> None:
    hosts = wired(read_site(write_site(tmp_path)))["phase_check"]["hosts"]
    packages = {name: host["user_environment_packages"] for name, host in hosts.items()}
    assert packages == {
        "ctl1": [],
        "login1": ["openssh-client", "python3-venv"],
        "node1": ["openssh-client", "python3-venv"],
        "node2": ["openssh-client", "python3-venv"],
    }
    assert "python3-venv" in hosts["login1"]["bootstrap_packages"]


def test_windows_open_everywhere_or_nowhere(tmp_path: Path) -> None:
    for value, wanted in (("true", True), ("false", False)):
        place = tmp_path / value
        place.mkdir()
        files = {"group_vars/all.yml": f"ssh_server_x11_forwarding: {value}\n"}
        groups = wired(read_site(write_site(place, files=files)))
        hosts = groups["phase_check"]["hosts"]
        assert groups["phase_controller"]["vars"]["slurmctld_x11"] is wanted
        having = {name for name, host in hosts.items() if "xauth" in host["bootstrap_packages"]}
        assert having == ({"login1", "node1", "node2"} if wanted else set())


def test_a_site_with_a_mail_server_has_slurm_send_by_it(tmp_path: Path) -> None:
    for name, text, program in (
        ("with", "mail_relay_host: smtp.example\n", "/usr/bin/mail"),
        ("without", "", ""),
    ):
        place = tmp_path / name
        place.mkdir()
        groups = wired(read_site(write_site(place, files={"group_vars/all.yml": text})))
        assert groups["phase_controller"]["vars"]["slurmctld_mail_program"] == program
        assert groups.get("phase_mail", {"hosts": {}})["hosts"].keys() == ({"ctl1"} if program else set())


def test_a_controller_makes_backups_where_a_site_says_when(tmp_path: Path) -> None:
    files = {
        "group_vars/slurm-master.yml": "backup_schedule: daily\nslurmctld_cluster_name: lab\n",
        "group_vars/all.yml": "slurmctld_state_save_location: /srv/state\nslurmdbd_database_name: acct\n",
    }
    phase = wired(read_site(write_site(tmp_path, files=files)))["phase_backup"]
    assert phase["hosts"].keys() == {"ctl1"}
    assert phase["vars"]["backup_cluster"] == "lab"
    assert phase["vars"]["backup_parts"] == {"state": "/srv/state", "database": "acct"}
    assert phase["vars"]["backup_textfile_directory"] == "/var/lib/prometheus/node-exporter"


def test_a_node_is_asked_for_the_size_of_its_scratch_before_its_contract_is_known(tmp_path: Path) -> None:
    files = {
        "group_vars/slurm-node.yml": "slurmd_weight: 1\n",
        "host_vars/node2.yml": "scratch_directory: /scratch\n",
    }
    site = read_site(write_site(tmp_path, files=files))
    write_discovery(tmp_path / "generated.json", site, build_plan(site, {}), {}, site.nodes)
    hosts = json.loads((tmp_path / "generated.json").read_text())["all"]["children"]["phase_check"]["hosts"]
    told = {name: host.get("slurmd_scratch_directory") for name, host in hosts.items()}
    assert told == {"ctl1": None, "login1": None, "node1": "/var/spool/scratch", "node2": "/scratch"}


def test_of_a_wanted_release_nothing_is_installed_before_the_role_pins_it(tmp_path: Path) -> None:
    for number, (value, installs) in enumerate((("''", True), ("'26.05'", False))):
        place = tmp_path / str(number)
        place.mkdir()
        files = {"group_vars/all.yml": f"slurm_packages_version: {value}\n"}
        hosts = wired(read_site(write_site(place, files=files)))["phase_check"]["hosts"]
        assert ("slurmctld" in hosts["ctl1"]["bootstrap_packages"]) is installs
        assert hosts["ctl1"]["slurm_packages_components"] == ["slurmdbd", "slurmctld", "slurm-client"]


TWO_CONTROLLERS = """
[slurm-master]
ctl1
ctl2

[slurm-database]
login1
"""


def test_accounting_is_where_the_inventory_says_and_controllers_know_each_other(tmp_path: Path) -> None:
    inventory = INVENTORY.replace("[slurm-master]\nctl1\n", TWO_CONTROLLERS)
    inventory = inventory.replace("login1 ansible", "ctl2 ansible_host=10.0.0.3\nlogin1 ansible")
    site = read_site(write_site(tmp_path, inventory))
    phases = wired(site)
    assert {name for name, group in phases.items() if "login1" in group["hosts"]} > {
        "phase_database",
        "phase_accounting",
        "phase_qos",
        "phase_associations",
    }
    assert [*phases["phase_controller"]["hosts"]] == ["ctl1", "ctl2"]
    assert phases["phase_controller"]["vars"]["slurmctld_database_host"] == "login1"
    assert phases["phase_accounting"]["vars"]["slurmdbd_host"] == "login1"
    assert phases["phase_compute"]["vars"]["slurmd_conf_servers"] == ["ctl1", "ctl2"]
    hosts = phases["phase_check"]["hosts"]
    assert hosts["login1"]["slurm_packages_components"] == ["slurmdbd", "sackd", "slurm-client"]
    assert hosts["ctl2"]["slurm_packages_components"] == ["slurmctld", "slurm-client"]
    # Without a time server of its own the cluster has one clock.
    assert "time_sync_servers" not in hosts["ctl1"]
    assert hosts["ctl2"]["time_sync_servers"] == ["10.0.0.1"]
    assert hosts["ctl2"]["time_sync_local_stratum"] > hosts["ctl1"]["time_sync_local_stratum"]


def test_controller_and_database_go_by_what_the_other_one_says(
    tmp_path: Path,
) -> None:
    files = {
        "group_vars/slurm-master.yml": (
            "slurmctld_private_data: [jobs, nodes]\nbackup_schedule: daily\nbackup_recipients: [age1x]\n"
        ),
        "group_vars/slurm-database.yml": "slurmdbd_database_name: books\n",
    }
    inventory = INVENTORY.replace("[slurm-login]", "[slurm-database]\nlogin1\n\n[slurm-login]")
    phases = wired(read_site(write_site(tmp_path, inventory, files)))
    assert phases["phase_check"]["hosts"]["login1"]["slurmdbd_private_data"] == ["jobs"]
    assert phases["phase_backup"]["vars"]["backup_parts"]["database"] == "books"
    assert phases["phase_associations"]["vars"]["slurm_accounts_database_name"] == "books"


def test_a_phase_that_follows_membership_reads_nothing_that_differs_between_hosts(tmp_path: Path) -> None:
    """Hosts that were verified are in the run for it alone, without the variables of their own."""
    site = read_site(write_site(tmp_path))
    own = {name for variables in wired_variables(site, {}).by_host.values() for name in variables}
    roles = {role for phase in PHASES if phase.follows_membership for role in phase.roles}
    assert {name for name in own if options()[name].role in roles} == set()

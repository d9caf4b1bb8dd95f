"""What is no mistake, and what holds for all findings together."""

from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.site.checks import check_site
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

ALL = "group_vars/all.yml"
ACCOUNTS = """\
slurm_accounts_accounts: [{name: a, parent: b}, {name: b}]
slurm_accounts_users: [{name: x, accounts: [a], qos: [normal]}, {name: x, accounts: [b]}]
"""
pytestmark = pytest.mark.usefixtures("quick_reading")


@pytest.mark.parametrize(
    "text",
    [
        "site_own: {anything: [1, 2]}\nusers_create_home: false\n",
        "hosts_file_address:\n",
        "slurmctld_partitions: [{name: a, default: true, max_time: '{{ site_time }}'}]\nsite_time: 1-00\n",
        "slurmctld_partitions: [{name: all, default: true, nodes: ['node[1-2]'], max_time: UNLIMITED}]\n",
        "slurm_accounts_qos: [{name: gpu, max_wall: '1-00:00:00', priority: -1, usage_factor: 0.5}]\n",
        ACCOUNTS,
        "users_accounts: [{name: alice, uid: 2001, ssh_keys: [KEY]}]\nusers_home_mode: '0750'\n".replace(
            "KEY", f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{43 * 'A'} alice"
        ),
        "slurmdbd_purge: {job: 12months, step: 30days}\nslurmdbd_port: '6820'\n",
        "time_sync_servers: [10.0.0.5, time.example.com]\ntime_sync_allow: [10.0.0.0/8, 'fd00::/8']\n",
        "ansible_port: 2222\nansible_ssh_retries: 3\nansible_custom_fact_of_mine: 1\n",
    ],
)
def test_what_is_right(tmp_path: Path, text: str) -> None:
    assert check_site(read_site(write_site(tmp_path, files={ALL: text}))) == []


def test_a_single_machine_may_be_everything(tmp_path: Path) -> None:
    text = "[slurm-master]\none ansible_connection=local ansible_host=127.0.0.1\n[slurm-node]\none\n"
    assert check_site(read_site(write_site(tmp_path, text))) == []


def test_all_findings_come_at_once(tmp_path: Path) -> None:
    inventory = INVENTORY.replace("10.0.0.12", "10.0.0.11")
    with pytest.raises(DeployError) as problem:
        check_site(read_site(write_site(tmp_path, inventory, {ALL: "nonsense: 1\nmunge_key: x\n"})))
    assert sorted(finding.reference for finding in problem.value.findings) == [
        "duplicate-address",
        "placeholder-secret",
        "unknown-variable",
    ]


def test_a_value_of_many_hosts_is_told_once(tmp_path: Path) -> None:
    files = {"group_vars/slurm-cluster.yml": "slurmd_weight: -1\n"}
    with pytest.raises(DeployError) as problem:
        check_site(read_site(write_site(tmp_path, files=files)))
    assert len(problem.value.findings) == 1


def test_of_two_files_the_wrong_one_is_named(tmp_path: Path) -> None:
    files = {ALL: "slurmd_weight: 1\n", "host_vars/node2.yml": "site_a: 1\nslurmd_weight: -1\n"}
    with pytest.raises(DeployError) as problem:
        check_site(read_site(write_site(tmp_path, files=files)))
    assert [finding.where.removeprefix(f"{tmp_path}/") for finding in problem.value.findings] == [
        "host_vars/node2.yml:2"
    ]

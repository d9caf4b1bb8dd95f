"""Fresh machines become a cluster, and stay as they are when it is deployed again."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.content import playbook
from deploy.run.settings import Settings, ansible_environment
from deploy.site.secrets import secret_names
from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import Cluster, wait_until


def test_machines_that_nothing_was_deployed_on(cluster: Cluster) -> None:
    hosts = cluster.status(expect=1)
    assert set(hosts) == {"ctl1", "login1", "node1", "node2"}
    references = {
        name: [finding["reference"] for finding in host["findings"]] for name, host in hosts.items()
    }
    assert references == {name: ["never-converged"] for name in hosts}
    assert not (cluster.directory / ".deploy").exists()
    assert not (cluster.directory / "secrets.yml").exists()


@pytest.mark.one_release
def test_a_plan_for_fresh_machines_lists_everything_and_changes_nothing(cluster: Cluster) -> None:
    answer = json.loads(cluster.plan("--json", expect=3))
    changes = answer["changes"]
    texts = "\n".join(line for change in changes for line in change["diff"])
    for package in ("slurmctld", "slurmdbd", "slurmd", "munge", "chrony", "mariadb-server"):
        assert re.search(rf"\b{package}\b", texts), package
    services = {(change["host"], change["service"]) for change in changes if change["service"]}
    assert services >= {("ctl1", "slurmctld"), ("ctl1", "slurmdbd"), ("ctl1", "mariadb"), ("node1", "slurmd")}
    assert services >= {(host, name) for host in ("ctl1", "node2") for name in ("munge", "chrony")}
    disturbing = {(change["impact"], change["service"]) for change in changes if change["impact"] != "none"}
    assert disturbing == {("reconfigure", "ssh")}
    assert answer["jobs"] == []
    cluster.on("ctl1", "test", "!", "-e", "/etc/slurm/slurm.conf")
    assert not (cluster.directory / "secrets.yml").exists()
    assert not (cluster.directory / "hardware.yml").exists()


def test_first_deployment(cluster: Cluster) -> None:
    said = cluster.deploy(validates=True).stdout
    assert re.search(r"^passed: 0 failed, \d\d passed, ", said, re.MULTILINE), said
    report = cluster.report()
    assert report["outcome"] == "converged"
    assert set(report["hosts"]) == {"ctl1", "login1", "node1", "node2"}
    assert all(host["changed"] for host in report["hosts"].values())
    idle = {"node1": "idle", "node2": "idle"}
    wait_until("the validation's jobs are over", lambda: cluster.node_states() == idle, seconds=120)
    assert (cluster.directory / "secrets.yml").stat().st_mode & 0o777 == 0o600


def test_the_machines_of_a_running_cluster_are_fit(cluster: Cluster) -> None:
    """Ports are taken by the daemons that they are meant for, and there is a Slurm: the right one."""
    answer = cluster.check()
    assert answer["findings"] == []
    assert "ports 6817, 3306, 123, 6819" in answer["hosts"]["ctl1"]["checked"]
    assert {"port 6818", "hardware contract"} <= set(answer["hosts"]["node1"]["checked"])


FACTS = ("distribution", "distribution_major_version", "pkg_mgr", "service_mgr")
COMPARISON = f"""\
- import_playbook: {playbook("check")}
- name: Compare
  hosts: phase_base
  become: true
  gather_facts: false
  tasks:
    - name: Keep the facts of the check
      ansible.builtin.set_fact:
        ours: "{{{{ ansible_facts }}}}"
    - name: Gather Ansible's own
      ansible.builtin.setup:
        gather_subset: ["!all", "!min", {", ".join(FACTS)}]
    - name: They are the same
      ansible.builtin.assert:
        that: ansible_facts[item] is defined and ours[item] == ansible_facts[item]
      loop: [{", ".join(FACTS)}]
"""


def test_the_facts_of_a_check_are_those_of_ansible(cluster: Cluster, tmp_path: Path) -> None:
    comparison = tmp_path / "comparison.yml"
    comparison.write_text(COMPARISON)
    generated = max(cluster.directory.glob(".deploy/runs/*/generated.json"))
    ansible = Path(sys.executable).with_name("ansible-playbook")
    answer = subprocess.run(
        [ansible, "-i", cluster.inventory, "-i", generated, comparison],
        env=os.environ | ansible_environment(Settings(mitogen=False)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.count("All assertions passed") == len(FACTS) * 4


def test_no_secret_is_written_where_it_does_not_belong(cluster: Cluster) -> None:
    lines = (cluster.directory / "secrets.yml").read_text().splitlines()
    found = dict(line.split(": ", 1) for line in lines if not line.startswith("#"))
    secrets = [*found.values()]
    assert [*found] == secret_names()
    for path in (cluster.directory / ".deploy").rglob("*"):
        if path.is_file():
            text = path.read_text(errors="replace")
            assert not [secret for secret in secrets if secret in text], path
    listing = cluster.on("ctl1", "stat", "-c", "%a %U", "/etc/munge/munge.key", "/etc/slurm/slurmdbd.conf")
    assert listing.splitlines() == ["400 munge", "600 slurm"]


def test_a_second_run_changes_nothing_and_disturbs_nothing(cluster: Cluster) -> None:
    hosts = ("ctl1", "login1", "node1", "node2")
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    before = cluster.starts(*hosts)
    assert {service for _, service in before} >= {"munge", "mariadb", "slurmdbd", "slurmctld", "slurmd"}
    for options in ((), ("--full",), ("--check",), ("--full", "--check")):
        cluster.deploy(*options)
        report = cluster.report()
        assert {name: host["changed"] for name, host in report["hosts"].items()} == dict.fromkeys(hosts, 0)
        is_looked_at = all(host["ok"] for host in report["hosts"].values())
        is_verified = all(host["verified"] for host in report["hosts"].values())
        assert (is_looked_at, is_verified) == (("--full" in options), ("--full" not in options))
    assert cluster.starts(*hosts) == before
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED")
    assert job_state(cluster, job) == "COMPLETED"


def test_a_plan_for_what_is_deployed_is_empty(cluster: Cluster) -> None:
    assert cluster.plan().strip() == "plan: nothing to change"

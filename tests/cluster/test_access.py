"""Who may be where: ssh to nodes needs a job there, login nodes give one user no more than a share."""

import re
import secrets

import pytest
import yaml

from tests.cluster.jobs import end_job, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until

MAKE_A_KEY = """\
mkdir -m 700 .ssh
ssh-keygen -q -t ed25519 -N "" -f .ssh/id_ed25519
cp .ssh/id_ed25519.pub .ssh/authorized_keys
echo StrictHostKeyChecking accept-new > .ssh/config
"""


def test_who_has_a_job_on_a_node_needs_no_key_to_go_there(cluster: Cluster) -> None:
    """Before anybody has one; and no host is unknown, whatever it is called."""
    job = submit(cluster, "-w node1", "sleep 300")
    wait_for_job(cluster, job, "RUNNING")
    ssh = "ssh -o BatchMode=yes -o StrictHostKeyChecking=yes"
    address = re.search(r"^node1 .*ansible_host=(\S+)", cluster.inventory.read_text(), re.MULTILINE)
    assert address
    for name in ("node1", address[1]):
        assert cluster.as_user(f"{ssh} {name} hostname") == "node1\n"
    assert cluster.as_user(f"srun --quiet --jobid {job} --overlap {ssh} node1 hostname") == "node1\n"
    assert "you have no active jobs" in cluster.as_user(f"{ssh} node2 hostname", expect=255)
    assert "Permission denied" in cluster.as_user(f"{ssh} login1 true", expect=255)
    assert "Permission denied" in cluster.as_user(f"{ssh} bob@node1 true", expect=255)
    end_job(cluster, job)


def test_ssh_to_a_node_needs_a_job_there_and_ends_with_it(cluster: Cluster) -> None:
    cluster.as_user(MAKE_A_KEY)
    assert "you have no active jobs on this node" in cluster.as_user("ssh node1 hostname", expect=255)
    job = submit(cluster, "-w node1", "sleep 300")
    wait_for_job(cluster, job, "RUNNING")
    assert f"/job_{job}/step_extern" in cluster.as_user("ssh node1 cat /proc/self/cgroup")
    cluster.as_user(f"srun --quiet --jobid {job} --overlap touch /tmp/of-the-job")
    assert cluster.as_user("ssh node1 'echo $TMPDIR; ls $TMPDIR'").split() == ["/tmp", "of-the-job"]
    assert "you have no active jobs" in cluster.as_user("ssh node2 hostname", expect=255)
    cluster.as_user("ssh node1 sleep 4711 > session 2>&1 & sleep 2")

    def is_in() -> bool:
        return bool(cluster.on("node1", "pgrep", "--full", "^sleep 4711", expect=None))

    wait_until("the session begins", is_in, 60)
    cluster.as_user(f"scancel {job}")
    wait_until("the session ends", lambda: not is_in(), 60)
    assert "closed by remote host" in cluster.as_user("cat session")


@pytest.mark.one_release
def test_a_password_leads_into_a_job_and_past_none(cluster: Cluster) -> None:
    """Asked by keyboard-interactive, sshd would have the wrong process join the job."""
    variables = cluster.directory / "group_vars" / "all.yml"
    before = variables.read_text()
    variables.write_text(f"{before}\nssh_server_password_login: true\n")
    cluster.deploy()
    password = secrets.token_hex(8)
    for host in ("login1", "node1"):
        cluster.on(host, "sh", "-c", f"echo alice:{password} | chpasswd")
    cluster.as_user(f"printf '#!/bin/sh\\necho {password}\\n' > answer; chmod 700 answer")
    asked = "SSH_ASKPASS=$HOME/answer SSH_ASKPASS_REQUIRE=force ssh -o PreferredAuthentications"
    job = submit(cluster, "-w node1", "sleep 300")
    wait_for_job(cluster, job, "RUNNING")
    # The same file of sshd's has it for whoever comes to a login node.
    assert cluster.as_user(f"{asked}=keyboard-interactive login1 hostname") == "login1\n"
    refused = cluster.as_user(f"{asked}=keyboard-interactive node1 cat /proc/self/cgroup", expect=255)
    assert "Permission denied" in refused
    assert f"/job_{job}/step_extern" in cluster.as_user(f"{asked}=password node1 cat /proc/self/cgroup")
    end_job(cluster, job)
    assert "you have no active jobs" in cluster.as_user(f"{asked}=password node1 true", expect=255)
    variables.write_text(before)
    cluster.deploy()
    cluster.on("node1", "passwd", "--lock", "alice")
    cluster.on("login1", "passwd", "--lock", "alice")


def test_a_memory_hog_on_the_login_node_is_stopped(cluster: Cluster) -> None:
    """By ssh, as people come in; alice has her key from the test above."""
    hog = "python3 -c 'print(len(bytearray({} << 20)))'; echo ended with $?"
    for megabytes, code in ((800, 137), (200, 0)):
        said = cluster.as_user(f"ssh login1 bash -s <<'END'\n{hog.format(megabytes)}\nEND")
        assert f"ended with {code}\n" in said


@pytest.mark.one_release
def test_what_leaves_the_inventory_is_taken_away_or_named(cluster: Cluster) -> None:
    """A right, a key, an account in Slurm and a node; alice has a key of her own from the first test."""
    variables = cluster.directory / "group_vars" / "all.yml"
    before, hosts = variables.read_text(), cluster.inventory.read_text()
    key = cluster.as_user("cat .ssh/id_ed25519.pub").strip()
    site = yaml.safe_load(before)
    (bob,) = (user for user in site["users_accounts"] if user["name"] == "bob")
    bob |= {"groups": ["sudo"], "ssh_keys": [key]}
    (in_slurm,) = (user for user in site["slurm_accounts_users"] if user["name"] == "bob")
    in_slurm["admin_level"] = "operator"
    variables.write_text(yaml.safe_dump(site))
    cluster.deploy()
    assert "(sudo)" in cluster.as_user("ssh bob@login1 id")
    assert "(ALL : ALL) ALL" in cluster.on("login1", "sudo", "-l", "-U", "bob")
    level = ("sacctmgr", "-nP", "show", "user", "bob", "format=adminlevel")
    assert cluster.on("ctl1", *level).strip() == "Operator"

    node = max(cluster.node_states())
    variables.write_text(before)
    cluster.inventory.write_text(re.sub(rf"^{node}\b.*\n", "", hosts, flags=re.MULTILINE))
    said = cluster.deploy().stdout
    assert "(sudo)" not in cluster.on("login1", "id", "bob")
    assert "not allowed to run sudo" in cluster.on("login1", "sudo", "-l", "-U", "bob", expect=None)
    cluster.as_user("ssh -o BatchMode=yes bob@login1 id", expect=255)
    assert cluster.on("ctl1", *level).strip() == "None"

    assert f"{node}: left the inventory, and still has: running slurmd, running munge" in said
    assert node not in cluster.node_states()
    cluster.on(node, "munge", "-n")
    (finding,) = cluster.status(expect=1)[node]["findings"]
    assert finding["reference"] == "host-departed"
    run(*DEPLOY, "node", "remove", str(cluster.inventory), node)
    cluster.on(node, "munge", "-n", expect=6)
    cluster.on(node, "test", "-e", "/etc/munge/munge.key", expect=1)
    assert node not in cluster.status()

"""A cluster through its life: first deployment, users, reruns, a third node, a dead node.

The tests of one release share one cluster and run in the order they are written.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.content import playbook
from deploy.run.settings import Settings, ansible_environment
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until

RECONFIGURES_WITHOUT_RESTART = ("trixie",)
"""Slurm 24.11 takes new nodes by reconfigure; 22.05 restarts slurmctld for them."""


def job_state(cluster: Cluster, job: str) -> str:
    """The accounting state of a job's only row."""
    rows = cluster.on(
        "ctl1",
        "sacct",
        "--noheader",
        "--allocations",
        "--duplicates",
        "--parsable2",
        "--format",
        "State",
        "--jobs",
        job,
    ).splitlines()
    assert len(rows) == 1, f"job {job} has {len(rows)} rows: {rows}"
    return rows[0]


def wait_for_job(cluster: Cluster, job: str, state: str, seconds: float = 60) -> None:
    rows = ("sacct", "--noheader", "--allocations", "--parsable2", "--format", "State", "--jobs", job)
    wait_until(f"job {job} {state}", lambda: cluster.on("ctl1", *rows).strip().startswith(state), seconds)


def submit(cluster: Cluster, options: str, script: str) -> str:
    """Submits a job as alice; returns its id."""
    return cluster.as_user(f"sbatch --parsable {options} --wrap '{script}'").strip().split(";")[0]


UNTIL_TOLD = "until test -e stop; do sleep 1; done; rm stop"
"""A job that runs as long as the test wants: until the file appears in alice's home."""


def test_a_check_of_fresh_machines_changes_nothing(cluster: Cluster) -> None:
    cluster.deploy("--check")
    assert all(not host["failed"] for host in cluster.report()["hosts"].values())
    cluster.on("ctl1", "test", "!", "-e", "/etc/slurm/slurm.conf")
    assert not (cluster.directory / "secrets.yml").exists()
    assert not (cluster.directory / "hardware.yml").exists()


def test_a_plan_for_fresh_machines_lists_packages_and_services(cluster: Cluster) -> None:
    answer = json.loads(cluster.plan("--json", expect=3))
    changes = answer["changes"]
    texts = "\n".join(line for change in changes for line in change["diff"])
    for package in ("slurmctld", "slurmdbd", "slurmd", "munge", "chrony", "mariadb-server"):
        assert re.search(rf"\b{package}\b", texts), package
    services = {(change["host"], change["service"]) for change in changes if change["service"]}
    assert services >= {("ctl1", "slurmctld"), ("ctl1", "slurmdbd"), ("ctl1", "mariadb"), ("node1", "slurmd")}
    assert services >= {(host, name) for host in ("ctl1", "node2") for name in ("munge", "chrony")}
    assert {change["impact"] for change in changes} == {"none"}
    assert answer["jobs"] == []
    assert not (cluster.directory / "secrets.yml").exists()


def test_first_deployment(cluster: Cluster) -> None:
    cluster.deploy()
    report = cluster.report()
    assert report["outcome"] == "converged"
    assert set(report["hosts"]) == {"ctl1", "login1", "node1", "node2"}
    assert all(host["changed"] for host in report["hosts"].values())
    assert cluster.node_states() == {"node1": "idle", "node2": "idle"}
    assert (cluster.directory / "secrets.yml").stat().st_mode & 0o777 == 0o600


def test_the_machines_of_a_running_cluster_are_fit(cluster: Cluster) -> None:
    """Ports are taken by the daemons that they are meant for, and there is a Slurm: the right one."""
    answer = cluster.check()
    assert answer["findings"] == []
    assert "ports 6817, 6819, 3306, 123" in answer["hosts"]["ctl1"]["checked"]
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
    wiring = max(cluster.directory.glob(".deploy/runs/*/wiring.json"))
    ansible = Path(sys.executable).with_name("ansible-playbook")
    answer = subprocess.run(
        [ansible, "-i", cluster.inventory, "-i", wiring, comparison],
        env=os.environ | ansible_environment(Settings(mitogen=False)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.count("All assertions passed") == len(FACTS) * 4


def test_two_nodes_with_a_gpu_each(cluster: Cluster) -> None:
    out = cluster.as_user("srun -N2 --gpus-per-node=1 nvidia-smi -L")
    assert sorted(re.findall(r"GPU-simulated-(node\d)-0", out)) == ["node1", "node2"]


MAKE_A_KEY = """\
mkdir -m 700 .ssh
ssh-keygen -q -t ed25519 -N "" -f .ssh/id_ed25519
cp .ssh/id_ed25519.pub .ssh/authorized_keys
echo StrictHostKeyChecking accept-new > .ssh/config
"""


def test_ssh_to_a_node_needs_a_job_there_and_ends_with_it(cluster: Cluster) -> None:
    cluster.as_user(MAKE_A_KEY)
    assert "you have no active jobs on this node" in cluster.as_user("ssh node1 hostname", expect=255)
    job = submit(cluster, "-w node1", "sleep 300")
    wait_for_job(cluster, job, "RUNNING")
    assert f"/job_{job}/step_extern" in cluster.as_user("ssh node1 cat /proc/self/cgroup")
    assert "you have no active jobs" in cluster.as_user("ssh node2 hostname", expect=255)
    cluster.as_user("ssh node1 sleep 4711 > session 2>&1 & sleep 2")
    assert cluster.on("node1", "pgrep", "--full", "^sleep 4711")
    cluster.as_user(f"scancel {job}")
    wait_until(
        "the session ends", lambda: not cluster.on("node1", "pgrep", "-f", "^sleep 4711", expect=None), 20
    )
    assert "closed by remote host" in cluster.as_user("cat session")


def test_a_memory_hog_on_the_login_node_is_stopped(cluster: Cluster) -> None:
    hog = "python3 -c 'print(len(bytearray(800 << 20)))'; echo ended with $?"
    assert "ended with 137\n" in cluster.as_user(hog)
    assert "ended with 0" in cluster.as_user(hog.replace("800", "200"), user="bob")


def test_a_second_run_changes_nothing_and_disturbs_nothing(cluster: Cluster) -> None:
    hosts = ("ctl1", "login1", "node1", "node2")
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    before = cluster.starts(*hosts)
    assert {service for _, service in before} >= {"munge", "mariadb", "slurmdbd", "slurmctld", "slurmd"}
    cluster.deploy()
    report = cluster.report()
    assert {name: host["changed"] for name, host in report["hosts"].items()} == dict.fromkeys(hosts, 0)
    cluster.deploy("--check")
    report = cluster.report()
    assert {name: host["changed"] for name, host in report["hosts"].items()} == dict.fromkeys(hosts, 0)
    assert cluster.starts(*hosts) == before
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED")
    assert job_state(cluster, job) == "COMPLETED"


def test_a_plan_for_what_is_deployed_is_empty(cluster: Cluster) -> None:
    assert cluster.plan().strip() == "plan: nothing to change"


def test_a_new_time_limit_is_a_reconfigure(cluster: Cluster) -> None:
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    wanted = json.dumps({"slurmctld_partitions": [{"name": "batch", "default": True, "max_time": "2:00:00"}]})
    answer = json.loads(cluster.plan("--json", "-e", wanted, expect=3))
    (change,) = answer["changes"]
    assert (change["impact"], change["service"]) == ("reconfigure", "slurmctld")
    differing = [line for line in change["diff"] if re.match(r"[-+](?![-+])", line)]
    assert [line.split(" ")[0] for line in differing] == ["-PartitionName=batch", "+PartitionName=batch"]
    assert set(differing[1][1:].split()) - set(differing[0][1:].split()) == {"MaxTime=2:00:00"}
    assert [(entry["id"], entry["state"]) for entry in answer["jobs"]] == [(job, "RUNNING")]


def test_jobs_are_not_lost_without_consent(cluster: Cluster) -> None:
    """Goes on with the job of the test above."""
    (job,) = cluster.as_user("squeue --me -h -o %A").split()
    runs = len(list((cluster.directory / ".deploy" / "runs").iterdir()))
    wanted = json.dumps({"slurmctld_parameters": {"SlurmdSpoolDir": "/var/spool/elsewhere"}})
    refused = cluster.deploy_refused("-e", wanted, expect=3)
    assert f"job {job} of alice" in refused
    assert "SlurmdSpoolDir (/var/spool/slurmd -> /var/spool/elsewhere)" in refused
    assert "elsewhere" not in cluster.on("ctl1", "cat", "/etc/slurm/slurm.conf")
    assert len(list((cluster.directory / ".deploy" / "runs").iterdir())) == runs
    other = cluster.directory / "without-node1.ini"
    lines = cluster.inventory.read_text().splitlines(keepends=True)
    other.write_text("".join(line for line in lines if not line.startswith("node1")))
    without = run(*DEPLOY, "plan", str(other), "--json", expect=3)
    (lost,) = json.loads(without.stdout)["losses"]
    assert (lost["parameter"], lost["before"], lost["jobs"]) == ("NodeName", "node1", [job])
    other.unlink()
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED")


def test_no_secret_is_written_where_it_does_not_belong(cluster: Cluster) -> None:
    secrets = [
        line.split(": ", 1)[1]
        for line in (cluster.directory / "secrets.yml").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert len(secrets) == 2
    for path in (cluster.directory / ".deploy").rglob("*"):
        if path.is_file():
            text = path.read_text(errors="replace")
            assert not [secret for secret in secrets if secret in text], path
    listing = cluster.on("ctl1", "stat", "-c", "%a %U", "/etc/munge/munge.key", "/etc/slurm/slurmdbd.conf")
    assert listing.splitlines() == ["400 munge", "600 slurm"]


def test_arrays(cluster: Cluster) -> None:
    job = submit(cluster, "--array=0-3 -o a%a.out", "echo task $SLURM_ARRAY_TASK_ID")
    rows = ("sacct", "--noheader", "--allocations", "--parsable2", "--format", "State", "--jobs", job)
    wait_until(
        "four tasks complete", lambda: cluster.on("ctl1", *rows).split() == ["COMPLETED"] * 4, seconds=60
    )
    assert cluster.as_user("cat a0.out a1.out a2.out a3.out").splitlines() == [f"task {n}" for n in range(4)]


def test_salloc_gives_a_shell_on_the_node(cluster: Cluster) -> None:
    out = cluster.as_user(
        "script -qec 'salloc -w node2 --gres=gpu:a100:1' /dev/null <<< 'echo on:$(hostname); exit'"
    )
    assert "on:node2" in out


def test_overlapping_step_sees_the_jobs_gpu(cluster: Cluster) -> None:
    job = submit(cluster, "-w node1 --gres=gpu:1", "sleep 60")
    wait_for_job(cluster, job, "RUNNING")
    out = cluster.as_user(f"srun --jobid {job} --overlap nvidia-smi -L")
    assert out.count("GPU-simulated-node1") == 1
    shown = cluster.as_user(f"squeue --me -h -o %A; scontrol show job {job}; scancel {job}")
    assert shown.splitlines()[0] == job
    assert "gres/gpu:a100=1" in shown
    wait_for_job(cluster, job, "CANCELLED")


def test_memory_is_enforced(cluster: Cluster) -> None:
    eat = "python3 -c 'x = bytearray(400 * 1024 * 1024); print(len(x))'"
    job = cluster.as_user(f'sbatch --parsable --mem=64M <<< "#!/bin/sh\n{eat}"').strip()
    wait_for_job(cluster, job, "OUT_OF_MEMORY")


def test_one_gpu_jobs_have_their_own_device(cluster: Cluster) -> None:
    probe = (
        "nvidia-smi -L; for n in 0 1; do python3 -c \"open('/dev/nvidia$n')\" 2>&1 | tail -1; done; sleep 8"
    )
    for name in ("one", "two"):
        cluster.as_user(f"sbatch -w node1 -n1 --gpus=1 -o {name}.out <<'EOF'\n#!/bin/sh\n{probe}\nEOF")
    wait_until("both jobs have ended", lambda: not cluster.as_user("squeue --me -h").strip(), seconds=60)
    answers = [cluster.as_user(f"cat {name}.out") for name in ("one", "two")]
    devices = [re.findall(r"GPU-simulated-node1-(\d)", answer) for answer in answers]
    assert sorted(devices) == [["0"], ["1"]]
    assert all(answer.count("Operation not permitted") == 1 for answer in answers), answers


def test_a_user_without_an_account_may_not_submit(cluster: Cluster) -> None:
    cluster.on("login1", "useradd", "--system", "--create-home", "--home-dir", "/var/lib/guest", "guest")
    cluster.on("ctl1", "useradd", "--system", "guest")
    out = cluster.as_user("srun hostname", user="guest", expect=1)
    assert "Invalid account" in out


@pytest.mark.parametrize("how", ["whole", "limited"])
def test_one_node_more(cluster: Cluster, how: str) -> None:
    """node3 joins by a full run, node4 by a run that is limited to it."""
    new, count = {"whole": ("node3", "3"), "limited": ("node4", "4")}[how]
    said = cluster.up("--nodes", count).stdout
    definition = re.search(rf"^{new} ansible_host=\S+$", said, re.MULTILINE)
    assert definition, said
    text = cluster.inventory.read_text()
    text = text.replace("[all]\n", f"[all]\n{definition.group()}\n").replace(
        "[slurm-node]\n", f"[slurm-node]\n{new}\n"
    )
    cluster.inventory.write_text(text)
    hosts = ("ctl1", "login1", "node1", "node2")
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    before = cluster.starts(*hosts)
    cluster.deploy(*(("--limit", new) if how == "limited" else ()))
    report = cluster.report()
    if how == "limited":
        assert set(report["hosts"]) == {"ctl1", new}
        assert report["hosts"]["ctl1"]["changed"] == 1
    wait_until(f"{new} idle", lambda: cluster.node_states().get(new) == "idle", seconds=30)
    after = cluster.starts(*hosts)
    if cluster.release in RECONFIGURES_WITHOUT_RESTART:
        assert after == before
    else:
        assert {key for key in before if before[key] != after[key]} <= {("ctl1", "slurmctld")}
    assert new in cluster.as_user(f"srun -w {new} hostname")
    assert cluster.as_user(f"srun -N2 -w node2,{new} hostname").split() != []
    assert job_state(cluster, job) == "RUNNING"
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED")
    assert job_state(cluster, job) == "COMPLETED"


def test_accounts_partitions_and_qos_are_data(cluster: Cluster) -> None:
    variables = cluster.directory / "group_vars" / "slurm-master.yml"
    variables.write_text(
        variables.read_text()
        + """
slurm_accounts_qos:
  - {name: short, max_wall: "00:10:00", priority: 50}
slurmctld_partitions:
  - {name: batch, default: true}
  - {name: dev, nodes: [node1], max_time: "00:15:00", qos: short}
"""
    )
    cluster.deploy()
    assert cluster.report()["hosts"]["ctl1"]["changed"] >= 2
    assert "dev up 15:00" in " ".join(
        cluster.on("ctl1", "sinfo", "-h", "-p", "dev", "-o", "%P %a %l").split()
    )
    out = cluster.as_user("srun -p dev -t 20 hostname", expect=1)
    assert "time limit" in out.lower()
    assert cluster.as_user("srun -p dev -t 1 hostname").strip() == "node1"
    cluster.deploy()
    assert cluster.report()["hosts"]["ctl1"]["changed"] == 0


def test_a_configuration_that_slurm_rejects_is_never_put_in_place(cluster: Cluster) -> None:
    before = cluster.on("ctl1", "cat", "/etc/slurm/slurm.conf")
    starts = cluster.starts("ctl1")
    bad = json.dumps({"slurmctld_parameters": {"SelectType": "select/nonsense"}})
    said = cluster.deploy("-e", bad, "--limit", "ctl1", "--tags", "slurmctld", expect=1).stdout
    assert "nothing was changed" in said
    assert cluster.on("ctl1", "cat", "/etc/slurm/slurm.conf") == before
    assert cluster.starts("ctl1") == starts
    assert "hostname" not in cluster.as_user("srun -w node1 hostname")


def test_a_node_that_shows_less_than_its_contract_is_reported(cluster: Cluster) -> None:
    cluster.on("node2", "mv", "/dev/nvidia1", "/dev/hidden")
    said = cluster.deploy("--limit", "node2", expect=1).stdout
    assert "gpus: the contract says 2, the machine shows 1" in said
    assert "gpu:a100:2" in cluster.on("ctl1", "sinfo", "-h", "-n", "node2", "-o", "%G")
    cluster.on("node2", "mv", "/dev/hidden", "/dev/nvidia1")
    cluster.deploy("--limit", "node2")


def test_an_unreachable_host_and_a_wrong_host_key_do_not_stop_the_others(cluster: Cluster) -> None:
    keys = cluster.directory / ".lab" / "known_hosts"
    good = keys.read_text()
    address = re.search(r"^node2 ansible_host=(\S+)", cluster.inventory.read_text(), re.MULTILINE)
    assert address
    lines = good.splitlines()
    other = next(line.split(" ", 1)[1] for line in lines if not line.startswith(f"{address.group(1)} "))
    swapped = [
        f"{address.group(1)} {other}" if line.startswith(f"{address.group(1)} ") else line for line in lines
    ]
    keys.write_text("\n".join(swapped) + "\n")
    run(*DEPLOY, "lab", "stop", "--name", cluster.name, "node4")
    try:
        said = cluster.deploy(expect=4).stdout
    finally:
        keys.write_text(good)
        run(*DEPLOY, "lab", "start", "--name", cluster.name, "node4")
    hosts = cluster.report()["hosts"]
    assert {name for name, host in hosts.items() if host["unreachable"]} == {"node2", "node4"}
    assert "node2" in said
    assert "ost key" in said
    assert hosts["node1"]["ok"] >= 8
    assert hosts["login1"]["ok"] >= 8


def test_a_node_that_dies_with_a_job_comes_back_by_itself(cluster: Cluster) -> None:
    job = submit(cluster, "-w node2 --requeue", "sleep 20")
    wait_for_job(cluster, job, "RUNNING")
    run(*DEPLOY, "lab", "stop", "--name", cluster.name, "node2")
    wait_until("node2 is down", lambda: cluster.node_states()["node2"].startswith("down"), seconds=120)
    assert cluster.as_user(f"squeue -h -j {job} -o %T").strip() in {"PENDING", "RUNNING"}
    run(*DEPLOY, "lab", "start", "--name", cluster.name, "node2")
    wait_until(
        "node2 is back", lambda: cluster.node_states()["node2"] in {"idle", "alloc", "mix"}, seconds=60
    )
    wait_for_job(cluster, job, "COMPLETED", seconds=240)
    assert "node2" in cluster.as_user("srun -w node2 hostname")

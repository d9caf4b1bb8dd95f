"""The site changes under running jobs: limits, nodes, accounts, and what must not happen."""

import json
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import pytest
import yaml

from deploy.errors import ExitCode
from deploy.in_memory import place_for_secrets
from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until
from tests.cluster.search import in_files, in_journal
from tests.planted import everywhere

RECONFIGURES_WITHOUT_RESTART = ("trixie",)
"""Slurm 24.11 takes new nodes by reconfigure; 22.05 restarts slurmctld for them."""


def test_a_new_time_limit_is_a_reconfigure(cluster: Cluster) -> None:
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    wanted = json.dumps({"slurmctld_partitions": [{"name": "batch", "default": True, "max_time": "2:00:00"}]})
    answer = json.loads(cluster.plan("--json", "-e", wanted, expect=3))
    # The message of the day names the limit too.
    (change,) = (change for change in answer["changes"] if change["role"] != "motd")
    assert (change["impact"], change["service"]) == ("reconfigure", "slurmctld")
    assert {other["impact"] for other in answer["changes"] if other is not change} == {"none"}
    differing = [line for line in change["diff"] if re.match(r"[-+](?![-+])", line)]
    assert [line.split(" ")[0] for line in differing] == ["-PartitionName=batch", "+PartitionName=batch"]
    assert set(differing[1][1:].split()) - set(differing[0][1:].split()) == {"MaxTime=2:00:00"}
    assert [(entry["id"], entry["state"]) for entry in answer["jobs"]] == [(job, "RUNNING")]
    cluster.as_user(f"scancel {job}")
    wait_for_job(cluster, job, "CANCELLED")


def test_a_daemon_that_comes_before_munge_brings_it_or_says_so_at_once(cluster: Cluster) -> None:
    """slurmd of 24.11 waits for ever for a child that munge's absence has ended; systemd gives it 90 s."""
    result = ("systemctl", "show", "--property", "Result", "--value", "slurmd")
    # A job that is ending cannot say so without munge, and Slurm drains its node.
    wait_until("node1 is idle", lambda: cluster.node_states()["node1"] == "idle", seconds=120)
    cluster.on("node1", "systemctl", "mask", "--now", "munge")
    try:
        cluster.on("node1", "systemctl", "restart", "slurmd", expect=1)
        assert cluster.on("node1", *result).strip() == "exit-code"
    finally:
        cluster.on("node1", "systemctl", "unmask", "munge")
    cluster.on("node1", "systemctl", "restart", "slurmd")
    assert cluster.on("node1", "systemctl", "is-active", "munge", "slurmd").split() == ["active", "active"]
    wait_until("node1 is back", lambda: cluster.node_states()["node1"] == "idle", seconds=60)


@pytest.mark.one_release
def test_jobs_are_not_lost_without_consent(cluster: Cluster) -> None:
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    runs = len(list((cluster.directory / ".deploy" / "runs").iterdir()))
    linear = {"SelectType": "select/linear", "SelectTypeParameters": "CR_Memory"}
    wanted = json.dumps({"slurmctld_parameters": {"SlurmdSpoolDir": "/var/spool/elsewhere", **linear}})
    refused = cluster.deploy_refused("-e", wanted, expect=3)
    assert f"job {job} of alice" in refused
    assert "SlurmdSpoolDir (/var/spool/slurmd -> /var/spool/elsewhere)" in refused
    assert "SelectType (select/cons_tres -> select/linear)" in refused
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


@pytest.mark.one_release
def test_another_munge_key_is_refused_and_when_meant_jobs_go_on(cluster: Cluster) -> None:
    """A site whose secrets.yml lost a line, then the rotation that this is with --new-secrets."""
    job = submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    before = {host: cluster.on(host, "sha256sum", "/etc/munge/munge.key") for host in ("ctl1", "node1")}
    secrets = cluster.directory / "secrets.yml"
    kept = [
        line for line in secrets.read_text().splitlines(keepends=True) if not line.startswith("munge_key:")
    ]
    secrets.write_text("".join(kept))
    refused = cluster.deploy_refused(expect=2)
    assert "/etc/munge/munge.key holds a munge_key that this site does not know" in refused
    assert secrets.read_text() == "".join(kept)
    assert {host: cluster.on(host, "sha256sum", "/etc/munge/munge.key") for host in before} == before
    cluster.deploy("--new-secrets")
    after = {cluster.on(host, "sha256sum", "/etc/munge/munge.key") for host in before}
    assert len(after) == 1
    assert after.isdisjoint(before.values())
    assert job_state(cluster, job) == "RUNNING"
    cluster.as_user("srun -w node2 true; touch stop")
    wait_for_job(cluster, job, "COMPLETED")


@pytest.mark.one_release
def test_two_runs_from_two_places_are_one_and_a_refusal(cluster: Cluster) -> None:
    lock = "/run/deploy.lock"
    cluster.on("ctl1", "sh", "-c", f'echo \'{{"who": "bob@ws7", "site": "/home/bob/site"}}\' > {lock}')
    cluster.on("ctl1", "systemd-run", "--unit=other-run", "flock", "--no-fork", lock, "sleep", "infinity")
    refused = cluster.deploy_refused("--full", expect=2)
    assert "ctl1: bob@ws7 (site /home/bob/site) is at work on this cluster" in refused
    cluster.plan()
    cluster.on("ctl1", "systemctl", "stop", "other-run")
    cluster.deploy("--full", "--limit", "login1")
    cluster.on("ctl1", "flock", "--nonblock", lock, "true")


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
    wait_until(f"{new} idle", lambda: cluster.node_states().get(new) == "idle", seconds=120)
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


def test_a_node_leaves_under_load(cluster: Cluster) -> None:
    """node4 has a job; what it had of the cluster is gone from it, and then from the cluster."""
    job = submit(cluster, "-w node4", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    words = (*DEPLOY, "node", "remove", str(cluster.inventory), "node4")
    said = run(*words, expect=1).stderr
    assert f"it is drained, and jobs run there: {job} (alice)" in said
    with subprocess.Popen((*words, "--wait"), stdout=subprocess.PIPE, text=True) as going:
        assert job_state(cluster, job) == "RUNNING"
        cluster.as_user("touch stop")
        told, _ = going.communicate(timeout=300)
    assert going.returncode == 0, told
    assert job_state(cluster, job) == "COMPLETED"
    lines = cluster.inventory.read_text().splitlines()
    numbers = [number for number, line in enumerate(lines, start=1) if line.split()[:1] == ["node4"]]
    places = ", ".join(f"{cluster.inventory}:{number}" for number in numbers)
    assert f"node4: drained. Delete it from {places}" in told
    # It cannot speak to Slurm any more, whatever it tries.
    cluster.on("node4", "systemctl", "start", "slurmd", expect=None)
    # Where its unit is simple, systemd tries again and again, and status would rightly name that.
    cluster.on("node4", "systemctl", "stop", "slurmd")
    cluster.on("node4", "sinfo", expect=1)
    cluster.on("node4", "ls", "/etc/munge/munge.key", expect=2)
    kept = [line for line in lines if line.split()[:1] != ["node4"]]
    cluster.inventory.write_text("\n".join(kept) + "\n")
    cluster.deploy()
    assert "node4" not in cluster.node_states()
    hosts = cluster.status()
    assert {name: host["findings"] for name, host in hosts.items() if host["findings"]} == {}
    assert cluster.on("ctl1", "grep", "-rlw", "node4", "/etc/hosts", "/etc/slurm", expect=1) == ""


@pytest.mark.more
@pytest.mark.one_release
def test_a_key_that_is_replaced_in_its_file_is_replaced_on_the_hosts(cluster: Cluster) -> None:
    """By records alone: nothing in the inventory changes, only what it looks up."""
    key = cluster.directory / "bob.pub"
    looked_up = "{{ lookup('ansible.builtin.file', inventory_dir ~ '/bob.pub') }}"
    accounts = [{"name": "alice", "uid": 2001}, {"name": "bob", "uid": 2002, "ssh_keys": [looked_up]}]
    wanted = ("-e", json.dumps({"users_accounts": accounts}))

    def kept() -> str:
        return cluster.on("ctl1", "cat", "/home/bob/.ssh/authorized_keys")

    old, new = (f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{letter * 43} of-bob" for letter in "AB")
    key.write_text(f"{old}\n")
    cluster.deploy(*wanted)
    assert old in kept()
    assert "nothing to change" in cluster.plan(*wanted)
    key.write_text(f"{new}\n")
    assert "+ssh keys of bob" in cluster.plan(*wanted, expect=3)
    cluster.deploy(*wanted)
    assert new in kept()
    assert old not in kept()
    key.unlink()


@pytest.mark.one_release
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


@pytest.mark.one_release
def test_a_configuration_that_slurm_rejects_is_never_put_in_place(cluster: Cluster) -> None:
    before = cluster.on("ctl1", "cat", "/etc/slurm/slurm.conf")
    starts = cluster.starts("ctl1")
    bad = json.dumps({"slurmctld_parameters": {"SelectType": "select/nonsense"}})
    said = cluster.deploy("-e", bad, "--limit", "ctl1", "--tags", "slurmctld", expect=1).stdout
    assert "nothing was changed" in said
    assert cluster.on("ctl1", "cat", "/etc/slurm/slurm.conf") == before
    assert cluster.starts("ctl1") == starts
    assert "hostname" not in cluster.as_user("srun -w node1 hostname")


@pytest.mark.one_release
def test_a_failure_stops_what_needs_it_and_nothing_else(cluster: Cluster) -> None:
    """The controller cannot be set up: nodes are not called converged, and sshd is done all the same."""
    later = {"name": "later", "start": "2030-01-01T08:00", "duration": "60", "nodes": ["node1"]}
    changes = {
        "ctl1": {"slurmctld_slurmd_timeout": 91, "slurm_reservations_planned": [later]},
        "login1": {"motd_text": ["maintained"]},
        "node1": {"slurmd_options": "-v"},
    }
    files = {cluster.directory / f"host_vars/{host}.yml": change for host, change in changes.items()}
    for path, change in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(change))
    cluster.on("ctl1", "chmod", "-x", "/usr/sbin/slurmctld")
    try:
        cluster.deploy("--yes", expect=1)
        report = cluster.report()
        assert [failure["host"] for failure in report["failures"]] == ["ctl1"]
        missing = {part["phase"]: part for part in report["not_run"]}
        assert missing.keys() == {"reservations", "compute"}
        assert missing["compute"]["why"] == "Controller failed on ctl1"
        assert "maintained" in cluster.on("login1", "cat", "/etc/motd.d/10-cluster")
        assert {*report["run"]["converged"]} == {*report["hosts"]} - {"ctl1", "node1"}
    finally:
        cluster.on("ctl1", "chmod", "+x", "/usr/sbin/slurmctld")
        for path in files:
            path.unlink()
    cluster.deploy("--yes")
    cluster.deploy()
    assert all(host["verified"] and not host["ok"] for host in cluster.report()["hosts"].values())


@pytest.mark.one_release
def test_a_node_that_shows_less_than_its_contract_is_reported(cluster: Cluster) -> None:
    cluster.on("node2", "mv", "/dev/nvidia1", "/dev/hidden")
    said = cluster.deploy("--limit", "node2", expect=1).stdout
    assert "gpus: the contract says 2, the machine shows 1" in said
    assert "gpu:a100:2" in cluster.on("ctl1", "sinfo", "-h", "-n", "node2", "-o", "%G")
    cluster.on("node2", "mv", "/dev/hidden", "/dev/nvidia1")
    cluster.deploy("--limit", "node2")


@pytest.mark.one_release
def test_no_secret_is_left_anywhere(cluster: Cluster, tmp_path: Path) -> None:
    """Neither in what this and all runs before left here and on the hosts, nor in a list of processes."""
    planted = token_hex(16)
    declared = tmp_path / "declared.yml"
    declared.write_text(json.dumps({"mariadb_users": everywhere(planted)["mariadb_users"]}))
    kept = yaml.safe_load((cluster.directory / "secrets.yml").read_text())
    secrets = [planted, *map(str, kept.values())]
    with ThreadPoolExecutor(1) as beside:
        is_over = threading.Event()
        seen = beside.submit(_commands, is_over)
        try:
            said = cluster.deploy("--diff", "-vvv", "--limit", "ctl1", "-e", f"@{declared}")
        finally:
            is_over.set()
    assert [command for command in seen.result() if any(secret in command for secret in secrets)] == []
    assert not any(secret in said.stdout + said.stderr for secret in secrets)
    said_since = list(_looked(cluster, planted, tmp_path))
    assert not any(secret in text for secret in secrets for text in said_since)
    assert not _holds(tmp_path / "page.html", secrets)
    own = [*cluster.directory.rglob("*"), *place_for_secrets().glob("deploy-*/**/*")]
    own += Path(tempfile.gettempdir()).glob("deploy-*/**/*")
    here = [path for path in own if path.is_file() and _holds(path, secrets)]
    assert here == [cluster.directory / "secrets.yml"]
    # Each where its service reads it, and there for nobody else.
    for host in ("ctl1", "login1", "node1"):
        assert not in_journal(cluster, host, secrets)
        found = in_files(cluster, host, secrets)
        assert {path: mode for path, mode in found.items() if not mode.endswith("---")} == {}
        assert "/etc/munge/munge.key" in found


def _looked(cluster: Cluster, planted: str, place: Path) -> Iterator[str]:
    """What verbs say that only look at the same cluster, with a secret in every option that may hold one."""
    everything = place / "everything.yml"
    everything.write_text(json.dumps(everywhere(planted)))
    told = ("-e", f"@{everything}")
    site = str(cluster.inventory)
    for words in (
        ("check", site, "--json", *told),
        ("plan", site, "--json", *told),
        ("plan", site, *told),
        ("cluster", site, "--check", "--full", "--diff", "-vvv", "--output", "jsonl", "--no-validate", *told),
        ("status", site, "--json"),
        ("validate", site, "--json", str(place / "answers.json"), "--html", str(place / "page.html")),
        ("report", site, "--json"),
        ("report", site, "--html", str(place / "page.html")),
    ):
        done = run(*DEPLOY, *words, expect=None)
        assert done.returncode in {ExitCode.OK, ExitCode.CHANGES_PENDING}, done.stdout + done.stderr
        yield done.stdout + done.stderr


def _commands(is_over: threading.Event) -> set[str]:
    """The command lines of all processes, of those in the containers too."""
    found: set[str] = set()
    while not is_over.wait(0.05):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                found.add(path.read_text(encoding="utf-8", errors="replace"))
    return found


def _holds(path: Path, secrets: list[str]) -> bool:
    try:
        content = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(secret in content for secret in secrets)

"""Machines with kernels of their own: control groups v2, /home by NFS with quotas, a reboot, a power cut.

A host of its own serves /home, so that it can be lost alone.
"""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from deploy.lab.state import container_name
from tests.cluster.conftest import RELEASES
from tests.cluster.jobs import UNTIL_TOLD, end_job, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, booted, run, wait_until
from tests.cluster.test_job_programs import SAID, reason, resume, write
from tests.cluster.validated import validated

pytestmark = pytest.mark.more
_TO_COME_BACK = 300
_TAKES_MB = "python3 -c 'len(bytes([1]) * ({} << 20))'"
_HOSTS = ("ctl1", "login1", "node1", "node2")
_FILES = "node2"
"""The file server: a machine that the lab has made to be a node."""
_MAKE_HOMES = """
set -e
truncate -s 256M /srv/homes
mkfs.ext4 -q -O quota -E quotatype=usrquota:grpquota /srv/homes
echo '/srv/homes /home ext4 loop,usrquota,grpquota 0 2' >>/etc/fstab
systemctl mask --quiet quotaon.service "$(systemd-escape --path --template=quotaon@.service /home)"
systemctl daemon-reload
mount /home
"""
_SERVER_VARIABLES = {
    "users_create_home": True,
    "quotas_filesystems": [
        {
            "path": "/home",
            "each_user": {"space": "40M"},
            "users": [{"name": "alice", "space": "20M", "files": 500}],
            "groups": [{"name": "bob", "space": "10M"}],
        }
    ],
}
_ROOT_IS_ROOT = "rw,sync,no_subtree_check,no_root_squash"
_OLD_CONTROL_GROUPS = "systemd.unified_cgroup_hierarchy=0 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
_ELSEWHERE = {
    *("standby", "plugins", "containers", "mpi", "portal", "energy"),
    *("nccl", "nccl-bandwidth", "nvbandwidth", "dcgm", "training"),
    *("prometheus", "targets", "alerts", "alertmanager", "grafana"),
}
"""What a validation may call not applicable: the cluster has one controller, and none of the other things."""
_OF_HOSTS = ("reachable", "services", "kernels", "control-groups", "mounts", "file-servers", "quotas")
"""The checks that ask hosts for what the faults change; what jobs are for is asked where nothing is wrong."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A controller, a login node, a node with two simulated GPUs, a file server: deployed."""
    options = ("--nodes", "2", "--gpus", "2")
    with booted("kernels", tmp_path_factory, *options, release=RELEASES[0], machines="uml") as made:
        _serve_homes_elsewhere(made)
        made.on(_FILES, "sh", "-c", _MAKE_HOMES)
        _set_clock(made, "ctl1")
        made.deploy()
        made.as_user("echo written here >note")
        yield made


def _serve_homes_elsewhere(cluster: Cluster) -> None:
    """What an admin writes who has a file server, and limits on it and on login nodes."""
    inventory = cluster.inventory.read_text()
    for before, after in (
        ("node1\nnode2\n\n", "node1\n\n"),
        ("[slurm-nfs]\nctl1\n", f"[slurm-nfs]\n{_FILES}\n"),
        ("[slurm-cluster:children]\n", "[slurm-cluster:children]\nslurm-nfs\n"),
    ):
        assert before in inventory
        inventory = inventory.replace(before, after)
    cluster.inventory.write_text(inventory)
    variables = cluster.directory / "group_vars"
    controller = (variables / "slurm-master.yml").read_text()
    (variables / "slurm-master.yml").write_text(controller.replace("users_create_home: true\n", ""))
    (variables / "slurm-nfs.yml").write_text(json.dumps(_SERVER_VARIABLES))
    write(cluster, SAID)
    (variables / "slurm-login.yml").write_text("login_limits_memory: 200M\nlogin_limits_processes: 60\n")


def test_nothing_changes_when_it_is_deployed_again(cluster: Cluster) -> None:
    assert "converged: no task failed (0 changes" in cluster.deploy().stdout


def test_each_machine_has_a_kernel_and_the_new_control_groups(cluster: Cluster) -> None:
    boots = {host: _boot(cluster, host) for host in _HOSTS}
    assert len(set(boots.values())) == len(boots)
    asked = ("exec", "node1", "--", "stat", "--file-system", "--format=%T", "/sys/fs/cgroup")
    assert _lab(cluster, *asked) == "cgroup2fs\n"


def test_modules_are_loaded_into_a_machines_own_kernel_and_taken_out(cluster: Cluster) -> None:
    cluster.on("node1", "modprobe", "dummy")
    assert "dummy" in _modules(cluster, "node1")
    assert "dummy" not in _modules(cluster, "login1")
    cluster.on("node1", "modprobe", "--remove", "dummy")
    assert "dummy" not in _modules(cluster, "node1")


def test_a_job_has_the_memory_it_asked_for_and_no_more(cluster: Cluster) -> None:
    limit = "cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/../memory.max"
    assert int(cluster.as_user(f"srun --quiet --mem=100 sh -c '{limit}'")) == 100 << 20
    cluster.as_user(f"srun --mem=100 {_TAKES_MB.format(10)}")
    said = cluster.as_user(f"srun --mem=100 {_TAKES_MB.format(400)}", expect=None)
    assert re.search("oom|out of memory", said, re.IGNORECASE)


def test_a_job_is_on_disk_when_it_has_been_taken(cluster: Cluster) -> None:
    """A file without the attribute is empty after a loss of power, and slurmctld ends where one is."""
    job = submit(cluster, "--hold", "true")
    script = f"/var/spool/slurmctld/hash.{int(job) % 10}/job.{job}/script"
    assert "S" in cluster.on("ctl1", "lsattr", script).split()[0]
    end_job(cluster, job)


def test_a_job_may_open_its_gpus_and_no_others(cluster: Cluster) -> None:
    one = cluster.as_user("srun --quiet --gpus=1 nvidia-smi -L").splitlines()
    both = cluster.as_user("srun --quiet --gpus=2 nvidia-smi -L").splitlines()
    assert (len(one), len(both)) == (1, 2)


def test_a_login_on_a_node_is_part_of_the_job_there(cluster: Cluster) -> None:
    ssh = "ssh -o BatchMode=yes node1"
    assert "no active jobs" in cluster.as_user(f"{ssh} true", expect=255)
    job = submit(cluster, "-w node1 --mem=150", "sleep 600")
    wait_for_job(cluster, job, "RUNNING")
    assert f"/job_{job}/step_extern" in cluster.as_user(f"{ssh} cat /proc/self/cgroup")
    said = cluster.as_user(f"{ssh} bash -s <<'END'\n{_TAKES_MB.format(400)}; echo ended with $?\nEND")
    assert "ended with 137" in said
    cluster.as_user("ssh -f -o BatchMode=yes node1 sleep 4711 >session 2>&1")
    session = ("pgrep", "--full", "^sleep 4711")
    wait_until("a session begins", lambda: cluster.on("node1", *session, expect=None) != "", 60)
    end_job(cluster, job)
    wait_until("the session ends", lambda: cluster.on("node1", *session, expect=None) == "", 60)
    assert "no active jobs" in cluster.as_user(f"{ssh} true", expect=255)


def test_a_user_of_a_login_node_has_a_share_of_it_and_no_more(cluster: Cluster) -> None:
    """By ssh with a key, as people come in."""
    make_a_key = "ssh-keygen -q -t ed25519 -N '' -f .ssh/key; cp .ssh/key.pub .ssh/authorized_keys"
    cluster.as_user(f"mkdir -pm 700 .ssh; {make_a_key}")
    ssh = "ssh -o BatchMode=yes -i .ssh/key login1 bash -s"
    for megabytes, code in ((300, 137), (50, 0)):
        script = f"{_TAKES_MB.format(megabytes)}; echo ended with $?"
        assert f"ended with {code}\n" in cluster.as_user(f"{ssh} <<'END'\n{script}\nEND")
    many = """python3 -c 'import subprocess; [subprocess.Popen(("sleep", "2")) for _ in range(100)]'"""
    said = cluster.as_user(f"{ssh} <<'END'\n{many}\nEND", expect=1)
    assert "Resource temporarily unavailable" in said


def test_programs_around_jobs_with_the_new_control_groups(cluster: Cluster) -> None:
    """What a user left outside of jobs ends with her last one, and a prolog that fails drains the node."""
    job = submit(cluster, "-w node1 --mem=50", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    cluster.on("node1", "systemd-run", "--quiet", "--uid=alice", "/usr/bin/sleep", "4714")
    left = ("pgrep", "--full", "^/usr/bin/sleep 4714")
    wait_until("it sleeps", lambda: cluster.on("node1", *left, expect=None) != "", 60)
    end_job(cluster, job)
    wait_until("nothing is left", lambda: cluster.on("node1", *left, expect=None) == "", 60)
    cluster.on("node1", "touch", "/srv/broken")
    job = submit(cluster, "-w node1 --mem=50", "true")
    said = "Prolog error : scratch: failed with exit code 3: no scratch"
    wait_until("the node is drained", lambda: reason(cluster, "node1") == said, 120)
    end_job(cluster, job)
    resume(cluster, "node1", "/srv/broken")


def test_homes_are_those_of_the_file_server_where_other_roots_are_nobody(cluster: Cluster) -> None:
    assert cluster.as_user("srun --quiet cat note").strip() == "written here"
    assert cluster.on("node1", "findmnt", "--noheadings", "--output=FSTYPE", "/home").strip() == "nfs4"
    cluster.as_user("chmod 0700 .")
    cluster.on("node1", "cat", "/home/alice/note", expect=1)
    assert cluster.on(_FILES, "cat", "/home/alice/note").strip() == "written here"


def test_quotas_hold_for_jobs_and_everybody_sees_theirs(cluster: Cluster) -> None:
    """On a node and a login node, which both have /home by NFS."""
    write = "dd if=/dev/zero of=big bs=1M count={} conv=fsync"
    cluster.as_user(write.format(10))
    (mine,) = _quotas(cluster, "alice", "user")
    assert (mine["file_system"], mine["limit"], mine["files_limit"], mine["warning"]) == (
        "/home",
        "20.0 MiB",
        "500",
        "",
    )
    assert 10 <= float(mine["used"].removesuffix(" MiB")) < 11
    assert "Disk quota exceeded" in cluster.as_user(f"srun --quiet {write.format(30)}", expect=1)
    assert _quotas(cluster, "alice", "user")[0]["used"] == "20.0 MiB"
    assert "Disk quota exceeded" in cluster.as_user("for n in $(seq 600); do : >f$n || break; done; rm f*")
    assert "Disk quota exceeded" in cluster.as_user(write.format(15), user="bob", expect=1)
    (ours,) = _quotas(cluster, "bob", "group")
    assert ours["limit"] == "10.0 MiB"
    cluster.as_user("rm big")
    cluster.as_user("rm big", user="bob")


def test_quotas_of_a_server_that_says_none_are_not_called_none(cluster: Cluster) -> None:
    cluster.on(_FILES, "systemctl", "stop", "quotarpc")
    try:
        said = cluster.as_user("show-quotas", expect=1)
    finally:
        cluster.on(_FILES, "systemctl", "start", "quotarpc")
    assert f"no quota server answered for /home of {_address(cluster, _FILES)}" in said
    assert "20.0 MiB" in cluster.as_user("show-quotas")


def test_a_validation_finds_nothing_wrong(cluster: Cluster) -> None:
    found = validated(cluster, "--quick", expect=0)
    assert {name for name, check in found.items() if check["outcome"] == "not applicable"} <= _ELSEWHERE
    for name in ("mounts", "file-servers", "quotas", "kernels", "control-groups", "memory-limit", "ssh-gate"):
        assert found[name]["outcome"] == "passed", found[name]


def test_what_others_change_is_named_and_put_right(cluster: Cluster) -> None:
    """Where containers have no state of their own: what the kernel exports, its limits, what it mounts."""
    exports = cluster.on(_FILES, "exportfs", "-s")
    done = (
        (_FILES, "setquota --user alice 0 0 0 0 /home", "limits of space and files"),
        (_FILES, f"exportfs -o {_ROOT_IS_ROOT} {_address(cluster, 'node1')}:/home", "exported directories"),
        (_FILES, "exportfs -o ro 192.0.2.1:/home", "exported directories"),
        ("node1", "umount --lazy /home", "/home"),
    )
    for host, command, _ in done:
        cluster.on(host, "sh", "-c", command)
    drift = {name: host["record"]["drift"] for name, host in cluster.status(expect=None).items()}
    for host, _, name in done:
        assert any(name in line for line in drift[host]), (host, drift)
    cluster.deploy("--yes")
    assert cluster.on(_FILES, "exportfs", "-s") == exports
    assert not any(host["record"]["drift"] for host in cluster.status().values())
    assert cluster.on(_FILES, "show-quotas", "--limits").splitlines()[0] == "user alice 0 20480 0 500"
    assert cluster.as_user("srun --quiet cat note").strip() == "written here"


def test_faults_of_kernels_and_file_servers_are_found(cluster: Cluster) -> None:
    """An update without a reboot; quotas that are off; an export by hand, in which root of a node is root."""
    running = cluster.on("node1", "uname", "-r").strip()
    newer = f"/boot/vmlinuz-{re.sub(r'[0-9]+', lambda number: str(int(number[0]) + 1), running, count=1)}"
    client = _address(cluster, "node1")
    try:
        cluster.on("node1", "touch", newer)
        cluster.on(_FILES, "exportfs", "-o", _ROOT_IS_ROOT, f"{client}:/home")
        cluster.on(_FILES, "quotaoff", "--user", "--group", "/home")
        found = _failed(_asked(cluster))
    finally:
        cluster.on(_FILES, "exportfs", "-r")
        cluster.on(_FILES, "quotaon", "--user", "--group", "/home", expect=None)
        cluster.on("node1", "rm", newer)
    assert {*found} == {"kernels", "file-servers", "quotas"}
    ((kernel,), (server,), (quota,)) = found["kernels"], found["file-servers"], found["quotas"]
    assert (kernel["where"], kernel["message"]) == (
        "node1",
        f"the kernel {running} runs, and {newer.removeprefix('/boot/vmlinuz-')} is installed",
    )
    assert f"deploy node reboot {cluster.inventory} node1" in kernel["hint"]
    assert (server["where"], server["message"]) == (
        _FILES,
        f"root of node1 is root in /home; /home is exported to {client} with no_root_squash",
    )
    assert f"deploy cluster {cluster.inventory} --limit {_FILES}" in server["hint"]
    assert quota["where"] == _FILES
    assert quota["message"] == "; ".join(
        f"/home: quotas of {kind}s are counted and not enforced" for kind in ("user", "group")
    )
    assert f"quotaon -ug /home   (on {_FILES})" in quota["hint"]


def test_a_file_server_that_hangs_is_named_and_holds_nobody_up(cluster: Cluster) -> None:
    with _hung(cluster, _FILES):
        found = _failed(_asked(cluster, "job"))
    assert [result["where"] for result in found["reachable"]] == [_FILES]
    (server,) = found["file-servers"]
    assert (server["where"], server["message"]) == (_FILES, "/home does not answer on ctl1, login1, node1")
    assert f"systemctl status nfs-server; dmesg --level=warn   (on {_FILES})" in server["hint"]
    assert [result["where"] for result in found["job"]] == ["login1"]
    wait_until("homes answer", lambda: "here" in cluster.as_user("cat note", expect=None), _TO_COME_BACK)
    _takes_jobs(cluster)


def test_a_node_that_reboots_takes_jobs_again(cluster: Cluster) -> None:
    before, job = _boot(cluster, "node1"), submit(cluster, "-w node1", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    words = ("node", "reboot", str(cluster.inventory), "node1", "--reason", "new kernel")
    with subprocess.Popen((*DEPLOY, *words), stdout=subprocess.PIPE, text=True) as going:
        wait_until("the node drains", lambda: cluster.node_states()["node1"] == "drng", _TO_COME_BACK)
        assert _boot(cluster, "node1") == before
        # There: a host remembers for a minute that a file of another one is not there.
        cluster.as_user("touch stop", host="node1")
        said, _ = going.communicate(timeout=2 * _TO_COME_BACK)
    assert (going.returncode, said) == (0, "rebooted: node1\n")
    assert _boot(cluster, "node1") != before
    assert job_state(cluster, job) == "COMPLETED"
    assert cluster.plain_states()["node1"] == "idle"
    _takes_jobs(cluster)


def test_a_node_without_power_is_down_and_comes_back(cluster: Cluster) -> None:
    """First with a kernel line that turns the new control groups off, without which slurmd does not start.

    Then before its file server. What ran there is started again, there.
    """
    job = submit(cluster, "-w node1", f"srun true; touch ran; {UNTIL_TOLD}")
    wait_until("it runs", lambda: "ran" in cluster.as_user("ls").split(), _TO_COME_BACK)
    cluster.on("node1", "sh", "-c", "echo kept >/var/lib/kept; sync")
    before = _boot(cluster, "node1")
    _lab(cluster, "stop", "node1")
    wait_until("the node is down", lambda: cluster.node_states()["node1"] == "down*", _TO_COME_BACK)
    _lab(cluster, "start", "node1", "--kernel-line", _OLD_CONTROL_GROUPS)
    found = _failed(_asked(cluster))
    (groups,) = found["control-groups"]
    assert (groups["where"], groups["message"]) == (
        "node1",
        f"control groups are of version 1 instead of 2, by its kernel line: {_OLD_CONTROL_GROUPS}",
    )
    assert f"deploy node reboot {cluster.inventory} node1" in groups["hint"]
    assert [result["where"] for result in found["services"]] == ["node1"]
    _lab(cluster, "stop", "node1")
    _lab(cluster, "stop", _FILES)
    cluster.power_on("node1")
    _lab(cluster, "start", _FILES)
    _lab(cluster, "start", "node1")
    assert _boot(cluster, "node1") != before
    assert cluster.on("node1", "cat", "/var/lib/kept").strip() == "kept"
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED", _TO_COME_BACK)
    _takes_jobs(cluster)
    assert cluster.on(_FILES, "systemctl", "--failed", "--quiet") == ""


def _set_clock(cluster: Cluster, host: str) -> None:
    """On a busy machine a kernel's clock is seconds behind when it has booted, and stays so.

    The others will have its time by NTP.
    """
    ahead = min(_ahead(cluster, host) for _ in range(3))[1]
    cluster.on(host, "python3", "-c", f"import time; time.clock_settime(0, time.time() + {ahead})")


def _ahead(cluster: Cluster, host: str) -> tuple[float, float]:
    """How long it took to ask a machine for its time, and by how much ours is ahead of that."""
    began = time.time()
    told = float(cluster.on(host, "date", "+%s.%N"))
    ended = time.time()
    return ended - began, (began + ended) / 2 - told


def _lab(cluster: Cluster, verb: str, *words: str) -> str:
    return run(*DEPLOY, "lab", verb, "--name", cluster.name, *words).stdout


@contextmanager
def _hung(cluster: Cluster, host: str) -> Iterator[None]:
    """A machine whose kernel does nothing more, for a while."""
    kill = ("podman", "kill", container_name(cluster.name, host), "--signal")
    run(*kill, "STOP")
    try:
        yield
    finally:
        run(*kill, "CONT")


def _asked(cluster: Cluster, *more: str) -> dict[str, Any]:
    """What the checks of hosts say, and more ones; something is wrong."""
    only = (word for check in (*_OF_HOSTS, *more) for word in ("--only", check))
    return validated(cluster, *only, expect=1)


def _failed(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """By check, what it found wrong."""
    return {
        name: [verdict for verdict in check["verdicts"] if verdict["outcome"] == "failed"]
        for name, check in found.items()
        if check["outcome"] == "failed"
    }


def _address(cluster: Cluster, host: str) -> str:
    match = re.search(rf"^{host} .*ansible_host=(\S+)", cluster.inventory.read_text(), re.MULTILINE)
    assert match
    return match[1]


def _modules(cluster: Cluster, host: str) -> set[str]:
    return {line.split()[0] for line in cluster.on(host, "cat", "/proc/modules").splitlines()}


def _quotas(cluster: Cluster, user: str, kind: str) -> list[dict[str, str]]:
    """What `show-quotas` says to a user on the login node, of one kind."""
    told: list[dict[str, str]] = json.loads(cluster.as_user("show-quotas --json", user=user))
    return [row for row in told if row["owner"].startswith(f"{kind} ")]


def _boot(cluster: Cluster, host: str) -> str:
    """The number that the kernel of a machine has from its boot; empty while nobody answers there."""
    return cluster.on(host, "cat", "/proc/sys/kernel/random/boot_id", expect=None).strip()


def _takes_jobs(cluster: Cluster) -> None:
    wait_until("the node is idle", lambda: cluster.node_states()["node1"] == "idle", _TO_COME_BACK)
    assert cluster.as_user("srun --quiet cat note").strip() == "written here"
    assert cluster.on("node1", "systemctl", "--failed", "--quiet") == ""

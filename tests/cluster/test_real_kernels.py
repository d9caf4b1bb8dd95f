"""Machines with kernels of their own: control groups v2, /home by NFS with quotas, what they drift from."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.cluster.jobs import UNTIL_TOLD, end_job, submit, wait_for_job
from tests.cluster.kernels_lab import FILES, HOSTS, asked, boot_of, failed, kernels_lab, on_lab
from tests.cluster.lab_cluster import Cluster, wait_until
from tests.cluster.test_job_programs import reason, resume
from tests.cluster.validated import validated

pytestmark = pytest.mark.more
_TAKES_MB = "python3 -c 'len(bytes([1]) * ({} << 20))'"
_ROOT_IS_ROOT = "rw,sync,no_subtree_check,no_root_squash"
_ELSEWHERE = {
    *("standby", "plugins", "containers", "mpi", "portal", "energy"),
    *("nccl", "nccl-bandwidth", "nvbandwidth", "dcgm", "training"),
    *("prometheus", "targets", "alerts", "alertmanager", "grafana"),
}
"""What a validation may call not applicable: the cluster has one controller, and none of the other things."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four machines, removed at the end in any case."""
    with kernels_lab("kernels", tmp_path_factory) as made:
        yield made


def test_nothing_changes_when_it_is_deployed_again(cluster: Cluster) -> None:
    assert "converged: no task failed (0 changes" in cluster.deploy().stdout


def test_each_machine_has_a_kernel_and_the_new_control_groups(cluster: Cluster) -> None:
    boots = {host: boot_of(cluster, host) for host in HOSTS}
    assert len(set(boots.values())) == len(boots)
    asked_of_it = ("exec", "node1", "--", "stat", "--file-system", "--format=%T", "/sys/fs/cgroup")
    assert on_lab(cluster, *asked_of_it) == "cgroup2fs\n"


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
    assert cluster.on(FILES, "cat", "/home/alice/note").strip() == "written here"


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
    cluster.on(FILES, "systemctl", "stop", "quotarpc")
    try:
        said = cluster.as_user("show-quotas", expect=1)
    finally:
        cluster.on(FILES, "systemctl", "start", "quotarpc")
    assert f"no quota server answered for /home of {_address(cluster, FILES)}" in said
    assert "20.0 MiB" in cluster.as_user("show-quotas")


def test_a_validation_finds_nothing_wrong(cluster: Cluster) -> None:
    found = validated(cluster, "--quick", expect=0)
    assert {name for name, check in found.items() if check["outcome"] == "not applicable"} <= _ELSEWHERE
    for name in ("mounts", "file-servers", "quotas", "kernels", "control-groups", "memory-limit", "ssh-gate"):
        assert found[name]["outcome"] == "passed", found[name]


def test_what_others_change_is_named_and_put_right(cluster: Cluster) -> None:
    """Where containers have no state of their own: what the kernel exports, its limits, what it mounts."""
    exports = cluster.on(FILES, "exportfs", "-s")
    done = (
        (FILES, "setquota --user alice 0 0 0 0 /home", "limits of space and files"),
        (FILES, f"exportfs -o {_ROOT_IS_ROOT} {_address(cluster, 'node1')}:/home", "exported directories"),
        (FILES, "exportfs -o ro 192.0.2.1:/home", "exported directories"),
        ("node1", "umount --lazy /home", "/home"),
    )
    for host, command, _ in done:
        cluster.on(host, "sh", "-c", command)
    drift = {name: host["record"]["drift"] for name, host in cluster.status(expect=None).items()}
    for host, _, name in done:
        assert any(name in line for line in drift[host]), (host, drift)
    cluster.deploy("--yes")
    assert cluster.on(FILES, "exportfs", "-s") == exports
    assert not any(host["record"]["drift"] for host in cluster.status().values())
    assert cluster.on(FILES, "show-quotas", "--limits").splitlines()[0] == "user alice 0 20480 0 500"
    assert cluster.as_user("srun --quiet cat note").strip() == "written here"


def test_faults_of_kernels_and_file_servers_are_found(cluster: Cluster) -> None:
    """An update without a reboot; quotas that are off; an export by hand, in which root of a node is root."""
    running = cluster.on("node1", "uname", "-r").strip()
    newer = f"/boot/vmlinuz-{re.sub(r'[0-9]+', lambda number: str(int(number[0]) + 1), running, count=1)}"
    client = _address(cluster, "node1")
    try:
        cluster.on("node1", "touch", newer)
        cluster.on(FILES, "exportfs", "-o", _ROOT_IS_ROOT, f"{client}:/home")
        cluster.on(FILES, "quotaoff", "--user", "--group", "/home")
        found = failed(asked(cluster))
    finally:
        cluster.on(FILES, "exportfs", "-r")
        cluster.on(FILES, "quotaon", "--user", "--group", "/home", expect=None)
        cluster.on("node1", "rm", newer)
    assert {*found} == {"kernels", "file-servers", "quotas"}
    ((kernel,), (server,), (quota,)) = found["kernels"], found["file-servers"], found["quotas"]
    assert (kernel["where"], kernel["message"]) == (
        "node1",
        f"the kernel {running} runs, and {newer.removeprefix('/boot/vmlinuz-')} is installed",
    )
    assert f"deploy node reboot {cluster.inventory} node1" in kernel["hint"]
    assert (server["where"], server["message"]) == (
        FILES,
        f"root of node1 is root in /home; /home is exported to {client} with no_root_squash",
    )
    assert f"deploy cluster {cluster.inventory} --limit {FILES}" in server["hint"]
    assert quota["where"] == FILES
    assert quota["message"] == "; ".join(
        f"/home: quotas of {kind}s are counted and not enforced" for kind in ("user", "group")
    )
    assert f"quotaon -ug /home   (on {FILES})" in quota["hint"]


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

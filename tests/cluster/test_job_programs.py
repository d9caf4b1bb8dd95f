"""Programs around jobs: what a failure does to node and job, what a user leaves when his last job ends."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.conftest import RELEASES
from tests.cluster.jobs import submit, wait_for_job
from tests.cluster.lab_cluster import Cluster, booted, wait_until
from tests.cluster.test_access import MAKE_A_KEY

pytestmark = [pytest.mark.one_release, pytest.mark.more]

SAID = {
    "job_programs_prolog": [
        {"name": "scratch", "text": "#!/bin/sh\ntest -e /srv/broken || exit 0\necho no scratch\nexit 3\n"},
        {"name": "slow", "text": "#!/bin/sh\ntest ! -e /srv/slow || sleep 4713\n", "seconds": 3},
        {"name": "late", "text": "#!/bin/sh\ntest ! -e /srv/late\n", "on_failure": "requeue"},
    ],
    "job_programs_gpu_files": True,
    "job_programs_clean_up": True,
    "job_programs_check_health": True,
}
OUT_OF_THE_JOB = """\
for pid in $(pgrep --full '^sleep 4714'); do
  for file in $(find /sys/fs/cgroup -maxdepth 2 -name cgroup.procs); do
    echo $pid > $file
  done
done 2> /dev/null
test -n "$pid" && ! grep job_ /proc/$pid/cgroup
"""


@pytest.fixture(scope="module", params=RELEASES)
def programmed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that gets its programs under a job, by which nothing restarts."""
    release = str(request.param)
    with booted("jobprograms", tmp_path_factory, "--nodes", "2", "--gpus", "2", release=release) as made:
        made.deploy()
        running = submit(made, "-w node1 --mem=50M", "sleep 600")
        wait_for_job(made, running, "RUNNING")
        started = made.starts("node1", "node2")
        write(made, SAID)
        said = made.plan(expect=3)
        assert "Prolog" in said
        assert "LOSES JOBS" not in said
        made.deploy()
        assert made.starts("node1", "node2") == started
        made.as_user(f"scancel {running}")
        made.as_user(MAKE_A_KEY)
        yield made


def write(cluster: Cluster, said: dict[str, object]) -> None:
    """Adds to what the lab says of its nodes."""
    file = cluster.directory / "group_vars/slurm-node.yml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | said))


def reason(cluster: Cluster, node: str) -> str:
    return cluster.on("ctl1", "sinfo", "--noheader", "--nodes", node, "--format", "%E").strip()


def resume(cluster: Cluster, node: str, file: str) -> None:
    cluster.on(node, "rm", file)
    cluster.on("ctl1", "scontrol", "update", f"NodeName={node}", "State=RESUME")
    wait_until(f"{node} waits for jobs", lambda: cluster.plain_states()[node] == "idle", 120)


def shown(cluster: Cluster, job: str) -> dict[str, str]:
    text = cluster.on("ctl1", "scontrol", "--oneliner", "show", "job", job)
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def starts_anew(cluster: Cluster, job: str) -> None:
    """Slurm waits two minutes before a job that was sent back begins again."""

    def waits() -> bool:
        facts = shown(cluster, job)
        return facts["Restarts"] == "1" and facts["JobState"] == "PENDING"

    wait_until(f"job {job} waits", waits, 120)
    cluster.on("ctl1", "scontrol", "update", f"JobId={job}", "StartTime=now")
    wait_for_job(cluster, job, "COMPLETED", seconds=120)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/srv/broken", "Prolog error : scratch: failed with exit code 3: no scratch"),
        ("/srv/slow", "Prolog error : slow: took longer than 3 s"),
    ],
)
def test_a_job_runs_elsewhere_where_a_prolog_fails(programmed: Cluster, file: str, said: str) -> None:
    """It begins on the only node that is in service then."""
    programmed.on("node1", "touch", file)
    programmed.on("ctl1", "scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=not its turn")
    job = submit(programmed, "--mem=50M", "hostname > where")
    wait_until("node1 is drained", lambda: reason(programmed, "node1") == said, 120)
    programmed.on("ctl1", "scontrol", "update", "NodeName=node2", "State=RESUME")
    starts_anew(programmed, job)
    assert programmed.as_user("cat where").strip() == "node2"
    assert programmed.on("node1", "pgrep", "--full", "^sleep 4713", expect=1) == ""
    resume(programmed, "node1", file)


def test_a_job_that_is_sent_back_leaves_the_node_in_service(programmed: Cluster) -> None:
    programmed.on("node1", "touch", "/srv/late")
    job = submit(programmed, "-w node1 --mem=50M", "true")
    wait_until("it was sent back", lambda: shown(programmed, job)["Restarts"] == "1", 120)
    programmed.on("node1", "rm", "/srv/late")
    starts_anew(programmed, job)
    assert "drain" not in programmed.plain_states()["node1"]


def test_what_an_ssh_session_left_goes_with_the_last_job(programmed: Cluster) -> None:
    """By a process of a session that got out of the job, as what cron starts for a user is."""
    jobs = [submit(programmed, "-w node1 --mem=50M --gpus=1", "sleep 600") for _ in range(2)]

    def with_gpus() -> list[str]:
        return sorted(programmed.on("node1", "sh", "-c", "cat /run/gpu_jobs/* 2> /dev/null; true").split())

    wait_until("each has a GPU", lambda: with_gpus() == sorted(jobs), 120)
    for job in jobs:
        wait_for_job(programmed, job, "RUNNING")

    def has_process() -> bool:
        return bool(programmed.on("node1", "pgrep", "--full", "^sleep 4714", expect=None))

    def left() -> list[str]:
        return programmed.on("node1", "sh", "-c", "ls -d /tmp/left /dev/shm/left; true").split()

    programmed.as_user("ssh node1 'nohup sleep 4714 > /dev/null 2>&1 & echo $!'")
    # The session may end before its program has begun.
    wait_until("it sleeps", has_process, 120)
    # Neither the session's job nor its user could do that.
    programmed.on("node1", "sh", "-c", OUT_OF_THE_JOB)
    programmed.on("node1", "su", "alice", "--shell", "/bin/sh", "--command", "touch /tmp/left /dev/shm/left")
    programmed.as_user(f"scancel {jobs[0]}")
    wait_until("the first is over", lambda: with_gpus() == [jobs[1]], 120)
    # Completing until its epilog is done.
    wait_until("its epilog, too", lambda: jobs[0] not in programmed.on("ctl1", "squeue", "--noheader"), 120)
    assert has_process()
    assert left() == ["/dev/shm/left", "/tmp/left"]
    programmed.as_user(f"scancel {jobs[1]}")
    wait_until("nothing of alice is left", lambda: not has_process() and not left(), 120)


def test_a_node_that_a_job_left_ill_is_out_of_service(programmed: Cluster) -> None:
    job = submit(programmed, "-w node2 --mem=50M", "until test -e stop; do sleep 1; done; rm stop")
    wait_for_job(programmed, job, "RUNNING")
    programmed.on("node2", "mv", "/dev/nvidia1", "/dev/lost")
    programmed.as_user("touch stop")
    said = "node_health: gpus: the contract says 2, the machine shows 1"
    wait_until("node2 is drained", lambda: reason(programmed, "node2") == said, 120)
    programmed.on("node2", "mv", "/dev/lost", "/dev/nvidia1")
    programmed.on("node2", "node_health")
    wait_until("node2 is back", lambda: programmed.plain_states()["node2"] == "idle", 120)


def test_programs_change_without_a_restart_and_their_drift_is_seen(programmed: Cluster) -> None:
    started = programmed.starts("ctl1", "node1", "node2")
    programs = [{"name": "new", "text": "#!/bin/sh\ntouch /srv/new\n"}]
    write(programmed, SAID | {"job_programs_prolog": programs})
    programmed.deploy("--limit", "node1")
    job = submit(programmed, "-w node1 --mem=50M", "true")
    wait_for_job(programmed, job, "COMPLETED")
    programmed.on("node1", "rm", "/srv/new")
    assert programmed.on("node1", "ls", "/etc/job_programs/prolog.d").split() == ["new"]
    assert "new" not in programmed.on("node2", "ls", "/etc/job_programs/prolog.d")
    programmed.deploy()
    assert programmed.starts("ctl1", "node1", "node2") == started
    programmed.on("node2", "sh", "-c", "echo exit 1 >> /etc/job_programs/prolog.d/new")
    assert "/etc/job_programs/prolog.d/new" in json.dumps(programmed.status(expect=None)["node2"])
    programmed.deploy()
    assert "exit 1" not in programmed.on("node2", "cat", "/etc/job_programs/prolog.d/new")

"""Jobs of alice, who is a user of every lab."""

from tests.cluster.lab_cluster import Cluster, wait_until

UNTIL_TOLD = "until test -e stop; do sleep 1; done; rm stop"
"""A job that runs as long as the test wants: until the file appears in alice's home."""


def submit(cluster: Cluster, options: str, script: str) -> str:
    """Submits a job as alice; returns its id."""
    return cluster.as_user(f"sbatch --parsable {options} --wrap '{script}'").strip().split(";")[0]


def wait_for_job(cluster: Cluster, job: str, state: str, seconds: float = 60, *, host: str = "ctl1") -> None:
    """Asks accounting, on a host; one slurmdbd may just be handing over to the other."""
    rows = ("sacct", "--noheader", "--allocations", "--parsable2", "--format", "State", "--jobs", job)
    wait_until(
        f"job {job} {state}",
        lambda: cluster.on(host, *rows, expect=None).strip().startswith(state),
        seconds,
    )


def end_job(cluster: Cluster, job: str) -> None:
    """Cancels a job and waits until its nodes have nothing of it: until then its owner may enter them."""
    cluster.on("ctl1", "scancel", job)
    known = ("squeue", "--noheader", "--format", "%A")
    wait_until(f"job {job} is gone", lambda: job not in cluster.on("ctl1", *known).split(), 60)


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

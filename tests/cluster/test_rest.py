"""The REST API on a login node of a cluster that was there before: jobs go on, tokens are judged."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import Cluster, booted, wait_until

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_URL = "https://login1:6820"
_VERSION = "v0.0.42"
_MPS = """\
#!/bin/sh
share=$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
[ -z "$share" ] || echo "$share $CUDA_VISIBLE_DEVICES" > /run/mps
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One node, and a login node that gets the REST API while a job runs."""
    with booted("rest", tmp_path_factory, "--nodes", "1", "--gpus", "1") as made:
        with (made.directory / "group_vars/slurm-node.yml").open("a") as file:
            yaml.safe_dump(
                {"slurmd_gpu_mps": True, "job_programs_prolog": [{"name": "mps", "text": _MPS}]}, file
            )
        made.deploy()
        job = submit(made, "", UNTIL_TOLD)
        wait_for_job(made, job, "RUNNING")
        before = made.starts("node1")
        inventory = made.inventory
        inventory.write_text(inventory.read_text() + "\n[slurm-rest]\nlogin1\n")
        made.deploy()
        assert made.starts("node1") == before
        for host in ("login1", "node1"):
            made.on(host, "apt-get", "install", "--yes", "--no-install-recommends", "curl", seconds=300)
        made.as_user("touch stop")
        wait_for_job(made, job, "COMPLETED")
        yield made


def test_a_user_submits_by_rest_and_accounting_has_the_job(served: Cluster) -> None:
    status, said = _ask(served, f"/slurm/{_VERSION}/jobs")
    assert (status, said["errors"]) == (200, [])
    job = _submitted(served)
    wait_for_job(served, job, "COMPLETED")
    rows = ("sacct", "--noheader", "--allocations", "--parsable2", "--format", "User,JobName", "--jobs", job)
    assert served.on("ctl1", *rows).strip() == "alice|by-rest"
    # slurmdbd takes the same token.
    status, said = _ask(served, f"/slurmdb/{_VERSION}/job/{job}")
    assert (status, [each["user"] for each in said["jobs"]]) == (200, ["alice"])


def test_who_has_no_token_of_his_own_is_refused(served: Cluster) -> None:
    path = f"/slurm/{_VERSION}/jobs"
    assert _ask(served, path, "X-SLURM-USER-NAME: alice", token=False)[0] == 401
    for name in ("root", "bob", "slurm"):
        status, said = _ask(served, path, f"X-SLURM-USER-NAME: {name}")
        assert status in {401, 500, 511}
        assert not said.get("jobs")
    assert "SLURM_JWT" not in served.as_user("scontrol token username=root", expect=1)


def test_it_is_reached_by_tls_from_the_cluster_and_nowhere_else(served: Cluster) -> None:
    # A node trusts the certificate that the login node shows.
    certificate = served.on("login1", "cat", "/etc/slurm-rest/tls.crt")
    served.as_user(f"cat > rest.crt <<'END'\n{certificate}END\n", host="node1")
    ask = "curl --silent --output /dev/null --write-out '%{http_code}' --cacert rest.crt"
    assert served.as_user(f"{ask} {_URL}/health", host="node1") == "200"
    assert served.as_user(f"{ask} http://login1:6820/health", host="node1") == "400"
    sockets = served.on("login1", "ss", "--listening", "--tcp", "--processes", "--numeric")
    assert "slurmrestd" not in sockets


def test_jobs_have_per_cents_of_a_gpu(served: Cluster) -> None:
    """Up to the edge of what has no driver: what Slurm tells the program that starts MPS, and the job."""
    said = served.as_user("srun --gres=mps:25 sh -c 'echo $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE'")
    assert said == "25\n"
    assert served.on("node1", "cat", "/run/mps") == "25 0\n"
    first = submit(served, "--gres=mps:60", UNTIL_TOLD)
    wait_for_job(served, first, "RUNNING")
    assert served.as_user("srun --gres=mps:40 echo both") == "both\n"
    others = [submit(served, f"--gres={too_much}", "true") for too_much in ("mps:41", "gpu:1")]
    for other in others:
        asked = f"squeue --noheader --jobs {other} --format %r"
        wait_until(f"job {other} waits", lambda: served.as_user(asked).strip() == "Resources", 60)  # noqa: B023
        served.as_user(f"scancel {other}")
    served.as_user("touch stop")
    wait_for_job(served, first, "COMPLETED")


def test_status_names_it_when_it_is_off_and_a_run_starts_it(served: Cluster) -> None:
    served.on("login1", "systemctl", "stop", "slurmrestd")
    findings = served.status(expect=None)["login1"]["findings"]
    assert any("slurmrestd" in json.dumps(each) for each in findings)
    served.deploy()
    assert served.on("login1", "systemctl", "is-active", "slurmrestd").strip() == "active"


def test_there_is_nothing_more_to_do(served: Cluster) -> None:
    assert served.plan().strip() == "plan: nothing to change"
    served.status()


def test_a_new_key_ends_all_tokens_and_no_job(served: Cluster) -> None:
    path = f"/slurm/{_VERSION}/jobs"
    job = submit(served, "", UNTIL_TOLD)
    wait_for_job(served, job, "RUNNING")
    served.as_user("scontrol token lifespan=3600 > old")
    planned = json.loads(served.plan("--json", "--rotate", "slurm_tokens_key", expect=3))
    impacts = {(change["impact"], change["service"]) for change in planned["changes"] if change["service"]}
    assert impacts == {("restart", "slurmctld"), ("restart", "slurmdbd")}
    served.deploy("--rotate", "slurm_tokens_key")
    assert _ask(served, path, make="cat old")[0] in {401, 500, 511}
    assert _ask(served, path)[0] == 200
    served.as_user("touch stop")
    wait_for_job(served, job, "COMPLETED")


def _ask(
    cluster: Cluster,
    path: str,
    *headers: str,
    token: bool = True,
    data: object = None,
    make: str = "scontrol token",
) -> tuple[int, Any]:
    """Status and answer for alice on the login node, with a token of hers or none."""
    named = headers or ("X-SLURM-USER-NAME: alice",)
    given = "".join(f" --header '{header}'" for header in named)
    given += ' --header "X-SLURM-USER-TOKEN: ${token#*=}"' if token else ""
    given += " --header 'Content-Type: application/json' --data @job.json" if data else ""
    files = f"cat > job.json <<'END'\n{json.dumps(data)}\nEND\n" if data else ""
    said = cluster.as_user(
        f"{files}token=$({make}); curl --silent --cacert /etc/slurm-rest/tls.crt{given} "
        f"--write-out '\\n%{{http_code}}' '{_URL}{path}'"
    )
    text, _, status = said.rpartition("\n")
    return int(status), json.loads(text) if text.startswith("{") else {}


def _submitted(cluster: Cluster) -> str:
    job = {
        "name": "by-rest",
        "current_working_directory": "/tmp",
        "environment": ["PATH=/usr/bin:/bin"],
        "script": "#!/bin/sh\nid --user --name\n",
    }
    status, said = _ask(cluster, f"/slurm/{_VERSION}/job/submit", data={"job": job})
    assert status == 200, said
    return str(said["job_id"])

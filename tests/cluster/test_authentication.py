"""Keys that are replaced under running jobs, and a cluster that goes from munge to auth/slurm and back."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.command_stream import stream
from tests.cluster.jobs import UNTIL_TOLD, job_state, submit, wait_for_job
from tests.cluster.lab_cluster import Cluster, booted
from tests.cluster.validated import validated

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_HOSTS = ("ctl1", "login1", "node1")
_KEYS = "/etc/slurm/slurm.jwks"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One node, by munge, as deploy makes it for who says nothing."""
    with booted("auth", tmp_path_factory, "--nodes", "1") as made:
        made.deploy()
        yield made


def _say(cluster: Cluster, **variables: object) -> None:
    path = cluster.directory / "group_vars/all.yml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **variables}))


def _of_all(cluster: Cluster, *command: str) -> set[str]:
    return {cluster.on(host, *command) for host in _HOSTS}


def _signing(cluster: Cluster) -> set[str]:
    """The names of the keys that hosts sign with."""
    found = [json.loads(cluster.on(host, "cat", _KEYS))["keys"] for host in _HOSTS]
    return {key["kid"] for keys in found for key in keys if key.get("use") == "default"}


def _impacts(cluster: Cluster, *options: str) -> set[tuple[str, str]]:
    planned = json.loads(cluster.plan("--json", *options, expect=3))
    return {(change["impact"], change["service"]) for change in planned["changes"] if change["service"]}


def test_a_new_munge_key_costs_commands_a_moment_and_no_job(cluster: Cluster) -> None:
    job = submit(cluster, "", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    secrets = (cluster.directory / "secrets.yml").read_bytes()
    before = _of_all(cluster, "sha256sum", "/etc/munge/munge.key")
    assert ("restart", "munge") in _impacts(cluster, "--rotate", "munge_key")
    assert (cluster.directory / "secrets.yml").read_bytes() == secrets
    with stream(cluster, "squeue") as typed:
        cluster.deploy("--rotate", "munge_key")
    # They wait for the controller; who asks in the moment in which keys differ may be refused.
    assert sum(map(bool, typed["squeue"].codes)) <= 1, typed["squeue"].errors
    after = _of_all(cluster, "sha256sum", "/etc/munge/munge.key")
    assert (len(after), after & before) == (1, set())
    assert job_state(cluster, job) == "RUNNING"
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED")
    assert cluster.as_user("srun hostname").strip() == "node1"
    assert cluster.plan().strip() == "plan: nothing to change"


def test_what_is_no_secret_is_refused(cluster: Cluster) -> None:
    said = cluster.deploy_refused("--rotate", "munge_kye", expect=2)
    assert "'munge_kye' is no secret that deploy makes" in said
    assert "did you mean 'munge_key'?" in said


def test_another_way_to_know_users_waits_for_jobs(cluster: Cluster) -> None:
    job = submit(cluster, "", UNTIL_TOLD)
    wait_for_job(cluster, job, "RUNNING")
    _say(cluster, slurm_auth_type="auth/slurm")
    refused = cluster.deploy_refused(expect=3)
    assert f"job {job} of alice" in refused
    assert "AuthType (auth/munge -> auth/slurm)" in refused
    assert cluster.as_user("srun --mem=10M hostname").strip() == "node1"
    cluster.as_user("touch stop")
    wait_for_job(cluster, job, "COMPLETED")
    cluster.deploy()
    assert "auth/slurm" in cluster.on("ctl1", "sh", "-c", "scontrol show config | grep ^AuthType")
    for host in _HOSTS:
        assert cluster.on(host, "stat", "--format=%a %U:%G", _KEYS).strip() == "600 slurm:slurm"
        cluster.on(host, "systemctl", "stop", "munge")
    assert cluster.as_user("srun true; sacct --noheader --allocations | tail -n 1")
    job = submit(cluster, "", "true")
    wait_for_job(cluster, job, "COMPLETED")
    cluster.deploy()
    assert cluster.plan().strip() == "plan: nothing to change"
    cluster.status()


def test_a_new_key_of_slurms_own_costs_nobody_anything(cluster: Cluster) -> None:
    job = submit(cluster, "", f"srun sh -c '{UNTIL_TOLD}'".replace("'", '"'))
    wait_for_job(cluster, job, "RUNNING")
    before = _signing(cluster)
    impacts = _impacts(cluster, "--rotate", "slurm_auth_key")
    assert impacts == {
        *(("reconfigure", "slurmd"), ("reconfigure", "sackd")),
        ("restart", "slurmdbd, slurmctld"),
    }
    starts = cluster.starts(*_HOSTS)
    with stream(cluster, "squeue", "sbatch", "srun", "sacct") as typed:
        cluster.deploy("--rotate", "slurm_auth_key")
    after = _signing(cluster)
    assert (len(after), after & before) == (1, set())
    for name in ("squeue", "sbatch", "srun"):
        assert set(typed[name].codes) == {0}, typed[name].errors
    restarted = {
        daemon for key, daemon in starts if cluster.starts(*_HOSTS).get((key, daemon)) != starts[key, daemon]
    }
    assert restarted == {"slurmdbd"}
    assert job_state(cluster, job) == "RUNNING"
    cluster.as_user("touch stop")
    for taken in (job, *typed["sbatch"].jobs):
        wait_for_job(cluster, taken, "COMPLETED", 180)
    assert cluster.plan().strip() == "plan: nothing to change"
    cluster.deploy("--full", "--check")
    assert not any(host["changed"] for host in cluster.report()["hosts"].values())


def test_a_host_with_another_key_is_named_and_gets_the_right_one(cluster: Cluster) -> None:
    cluster.on("node1", "chmod", "644", _KEYS)
    assert _KEYS in cluster.plan(expect=3)
    cluster.deploy()
    assert cluster.on("node1", "stat", "--format=%a", _KEYS).strip() == "600"
    strange = {
        "keys": [{"alg": "HS256", "kty": "oct", "kid": "x", "k": "c3RyYW5nZXJzc3RyYW5nZXJzc3RyYW5nZXJz"}]
    }
    cluster.on(
        "node1", "sh", "-c", f"echo '{json.dumps(strange)}' > {_KEYS}; systemctl restart --no-block slurmd"
    )
    assert "slurm_auth_key that this site does not know" in cluster.deploy_refused("--full", expect=2)
    cluster.deploy("--full", "--new-secrets")
    assert len(_signing(cluster)) == 1
    assert cluster.as_user("srun hostname").strip() == "node1"


def test_a_validation_judges_what_slurm_signs(cluster: Cluster) -> None:
    assert validated(cluster, "--only", "munge", expect=0)["munge"]["outcome"] == "passed"
    cluster.on("node1", "systemctl", "stop", "slurmd")
    failed = validated(cluster, "--only", "munge", expect=1)["munge"]
    assert "Slurm of node1 and of ctl1, login1 do not understand each other" in json.dumps(failed)
    cluster.on("node1", "systemctl", "start", "slurmd")


def test_back_to_munge(cluster: Cluster) -> None:
    _say(cluster, slurm_auth_type="auth/munge")
    cluster.deploy()
    for host in _HOSTS:
        cluster.on(host, "test", "!", "-e", _KEYS)
    assert "auth/munge" in cluster.on("ctl1", "sh", "-c", "scontrol show config | grep ^AuthType")
    assert cluster.as_user("srun hostname").strip() == "node1"
    assert cluster.plan().strip() == "plan: nothing to change"
    cluster.status()

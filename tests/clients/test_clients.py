"""What users submit jobs with, as their documentation has it: installed by a user, run on a login node."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.lab.state import container_name
from tests.cluster.lab_cluster import Cluster, booted, run

pytestmark = pytest.mark.clients

PLACE = Path(__file__).parent
TRUSTED = "/etc/ssl/certs/ca-certificates.crt"
INSTALL = "python3 -m venv clients && clients/bin/pip install --quiet --requirement programs/clients.lock"


@pytest.fixture(scope="module")
def login(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """On its login node alice has the programs. TLS of registries goes by what this machine trusts."""
    with booted("clients", tmp_path_factory, "--nodes", "1", "--gpus", "1") as made:
        made.deploy()
        host = container_name(made.name, "login1")
        programs = tmp_path_factory.mktemp("copied") / "programs"
        shutil.copytree(PLACE / "programs", programs)
        shutil.copyfile(PLACE / "clients.lock", programs / "clients.lock")
        run("podman", "cp", str(programs), f"{host}:/home/alice/programs")
        run("podman", "cp", TRUSTED, f"{host}:/etc/ssl/certs/of-the-tests.crt")
        made.on("login1", "chown", "--recursive", "alice:", "/home/alice/programs")
        made.as_user(f"PIP_CERT=/etc/ssl/certs/of-the-tests.crt; export PIP_CERT; {INSTALL}", seconds=900)
        yield made


def typed(cluster: Cluster, command: str, expect: int = 0) -> str:
    """What alice reads; nothing of hers may be left in the queue."""
    said = cluster.as_user(f"export PATH=$HOME/clients/bin:$PATH; {command}", expect=expect, seconds=300)
    left = cluster.as_user("squeue --me --noheader --states=PENDING,RUNNING --format='%A %j %T'")
    assert left == "", f"{left}{said}"
    return said


def accounted(cluster: Cluster, name: str) -> list[str]:
    """The states of all jobs of that name, as accounting has them."""
    rows = "sacct --noheader --allocations --parsable2 --format=State --name"
    return sorted(line.split()[0] for line in cluster.as_user(f"{rows} {name}").splitlines())


def test_submitit_brings_results_and_errors_back(login: Cluster) -> None:
    said = typed(login, "python programs/with_submitit.py")
    assert "sums [5, 7, 9] on node1" in said
    assert "failed with ZeroDivisionError" in said
    assert accounted(login, "submitit-sum") == ["COMPLETED"] * 3
    assert accounted(login, "submitit-error") == ["FAILED"]


def test_dask_computes_on_workers_that_are_jobs(login: Cluster) -> None:
    said = typed(login, "python programs/with_dask.py")
    assert "sum 332833500 by 2 workers on ['node1']" in said


def test_snakemake_makes_what_is_wanted_by_a_job_for_each(login: Cluster) -> None:
    said = typed(login, "cd programs && snakemake --executor slurm --jobs 2 --latency-wait 60 all.txt")
    assert "3 of 3 steps (100%) done" in said
    assert login.as_user("sort programs/all.txt") == "a on node1\nb on node1\n"


def test_reframe_measures_and_judges(login: Cluster) -> None:
    words = "reframe --config-file programs/reframe_site.py --checkpath programs/reframe_checks.py --run"
    said = typed(login, words, expect=1)
    assert "Ran 2/2 test case(s) from 2 check(s) (1 failure(s)" in said
    assert "OK" in said


def test_parsl_runs_functions_in_a_pilot_job(login: Cluster) -> None:
    said = typed(login, "python programs/with_parsl.py")
    assert "squares [0, 1, 4, 9] on ['node1']" in said

"""MPI as people write it, in C and in Python: two ranks on each of two nodes, /tmp private to the job."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import RELEASES
from tests.cluster.lab_cluster import Cluster, booted

pytestmark = pytest.mark.more
_PACKAGES = "openmpi_packages: [openmpi-bin, libopenmpi-dev, gcc, libc6-dev, python3-mpi4py]\n"
_JOB = "srun --quiet --nodes=2 --ntasks-per-node=2 --mpi=pmix"
_IN_C = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d of %d\n", rank, sum);
    return MPI_Finalize();
}
"""
_IN_PYTHON = """
from mpi4py import MPI
world = MPI.COMM_WORLD
print(world.rank, "of", world.allreduce(1))
"""
_ALL = [f"{rank} of 4" for rank in range(4)]


@pytest.fixture(scope="module", params=RELEASES)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    release = str(request.param)
    with booted(f"mpi-{release}", tmp_path_factory, "--nodes", "2", "--gpus", "0", release=release) as made:
        with (made.directory / "group_vars" / "all.yml").open("a") as file:
            file.write(_PACKAGES)
        made.deploy()
        yield made


def _written(cluster: Cluster, name: str, text: str) -> None:
    cluster.as_user(f"cat > {name} <<'END'{text}END\n")


def test_jobs_have_their_own_tmp(cluster: Cluster) -> None:
    cluster.as_user("srun --quiet touch /tmp/mark")
    assert "JobContainerType=job_container/tmpfs" in cluster.on("ctl1", "cat", "/etc/slurm/slurm.conf")
    assert cluster.on("node1", "find", "/tmp", "-name", "mark") == ""


def test_a_c_program_has_all_its_ranks(cluster: Cluster) -> None:
    _written(cluster, "ranks.c", _IN_C)
    said = cluster.as_user(f"mpicc -o ranks ranks.c && {_JOB} ./ranks")
    assert sorted(said.splitlines()) == _ALL


def test_a_python_program_has_all_its_ranks(cluster: Cluster) -> None:
    _written(cluster, "ranks.py", _IN_PYTHON)
    assert sorted(cluster.as_user(f"{_JOB} python3 ranks.py").splitlines()) == _ALL


def test_an_interrupted_program_leaves_nothing_in_the_hosts_tmp(cluster: Cluster) -> None:
    _written(cluster, "ranks.py", _IN_PYTHON + "import time; time.sleep(60)\n")
    cluster.as_user(f"timeout 8 {_JOB} python3 ranks.py", expect=None)
    for node in ("node1", "node2"):
        assert cluster.on(node, "find", "/tmp", "/dev/shm", "-user", "alice") == ""

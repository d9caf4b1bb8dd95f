"""What people compile and start: MPI in C and in Python, /tmp private to the job, and windows."""

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import RELEASES
from tests.cluster.lab_cluster import Cluster, booted

pytestmark = pytest.mark.more
_PACKAGES = (
    "openmpi_packages: [openmpi-bin, libopenmpi-dev, python3-mpi4py]\nssh_server_x11_forwarding: true\n"
)
_JOB = "srun --quiet --nodes=2 --ntasks-per-node=2 --mpi=pmix"
# A moment before the first message: see docs/software.md.
_IN_C = r"""
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rank, one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    sleep(1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d of %d\n", rank, sum);
    return MPI_Finalize();
}
"""
_IN_PYTHON = """
from time import sleep
from mpi4py import MPI
sleep(1)
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


def test_what_is_written_in_cpp_and_fortran_compiles(cluster: Cluster) -> None:
    _written(cluster, "ranks.cpp", _IN_C)
    _written(cluster, "ranks.f90", "\nuse mpi\ninteger :: e\ncall MPI_Init(e)\ncall MPI_Finalize(e)\nend\n")
    cluster.as_user(
        "mpicxx -o in_cpp ranks.cpp && ./in_cpp && mpifort -o in_fortran ranks.f90 && ./in_fortran"
    )


def test_a_python_program_has_all_its_ranks(cluster: Cluster) -> None:
    _written(cluster, "ranks.py", _IN_PYTHON)
    assert sorted(cluster.as_user(f"{_JOB} python3 ranks.py").splitlines()) == _ALL


def test_an_interrupted_program_leaves_nothing_in_the_hosts_tmp(cluster: Cluster) -> None:
    _written(cluster, "ranks.py", _IN_PYTHON + "import time; time.sleep(60)\n")
    cluster.as_user(f"timeout 8 {_JOB} python3 ranks.py", expect=None)
    for node in ("node1", "node2"):
        assert cluster.on(node, "find", "/tmp", "/dev/shm", "-user", "alice") == ""


_SCREEN = """
import socket
server = socket.create_server(("127.0.0.1", 6012))
server.settimeout(60)
client, _ = server.accept()
print(client.recv(5).decode(), flush=True)
client.sendall(b"\\0")
"""
_WINDOW = """
import os, socket
host, _, display = os.environ["DISPLAY"].partition(":")
client = socket.create_connection((host or "localhost", 6000 + int(display.split(".")[0])))
client.sendall(b"hello")
print("answered", len(client.recv(1)))
"""


def test_a_job_opens_windows_at_its_owners_screen(cluster: Cluster) -> None:
    _written(cluster, "screen.py", _SCREEN)
    _written(cluster, "window.py", _WINDOW)
    cluster.as_user("xauth -q add localhost:12 . 0123456789abcdef0123456789abcdef")
    start = "DISPLAY=localhost:12 srun --quiet --x11 python3 window.py"
    said = cluster.as_user(f"python3 screen.py > screen.out & {start}; wait; cat screen.out")
    assert said.splitlines()[-2:] == ["answered 1", "hello"]

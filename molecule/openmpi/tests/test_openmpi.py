"""srun starts the ranks of an MPI program, and they find each other."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

On = Callable[..., CompletedProcess[str]]

PROGRAM = (Path(__file__).parents[2] / "shared/count_ranks.py").read_text()


@pytest.fixture(params=["bookworm", "trixie"])
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_ranks_of_a_users_program_count_each_other(on: On, machine: str) -> None:
    on(machine, "tee", "/srv/count_ranks.py", data=PROGRAM)
    user = ["timeout", "120", "setpriv", "--reuid=alice", "--regid=alice", "--init-groups"]
    job = ["srun", "--quiet", "--chdir=/", "--ntasks=2", "--mpi=pmix", "python3", "/srv/count_ranks.py"]
    said = sorted(on(machine, *user, *job).stdout.splitlines())
    assert said == [f"rank {rank} of 2 on molecule-openmpi-{machine}" for rank in range(2)]

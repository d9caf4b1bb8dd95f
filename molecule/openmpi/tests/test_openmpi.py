"""srun starts the ranks of an MPI program, and they find each other."""

from pathlib import Path

from molecule.conftest import On

PROGRAM = (Path(__file__).parents[2] / "shared/count_ranks.py").read_text()


def test_ranks_of_a_users_program_count_each_other(on: On, machine: str) -> None:
    on(machine, "tee", "/srv/count_ranks.py", data=PROGRAM)
    user = ["timeout", "120", "setpriv", "--reuid=alice", "--regid=alice", "--init-groups"]
    job = ["srun", "--quiet", "--chdir=/", "--ntasks=2", "--mpi=pmix", "python3", "/srv/count_ranks.py"]
    said = sorted(on(machine, *user, *job).stdout.splitlines())
    assert said == [f"rank {rank} of 2 on molecule-openmpi-{machine}" for rank in range(2)]

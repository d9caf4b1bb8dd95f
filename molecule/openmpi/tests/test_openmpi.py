"""srun starts the ranks of an MPI program, the one that deploy validate runs, and they find each other."""

import json
from pathlib import Path

from molecule.conftest import On

PROGRAM = (Path(__file__).parents[3] / "deploy/validate/programs/ranks.py").read_text()
MARK = "deploy-probe:"


def test_ranks_of_a_users_program_count_each_other(on: On, machine: str) -> None:
    on(machine, "tee", "/srv/ranks.py", data=PROGRAM)
    user = ["timeout", "120", "setpriv", "--reuid=alice", "--regid=alice", "--init-groups"]
    job = ["srun", "--quiet", "--chdir=/", "--ntasks=2", "--mpi=pmix", "python3", "/srv/ranks.py"]
    said = [json.loads(line.partition(MARK)[2]) for line in on(machine, *user, *job).stdout.splitlines()]
    assert sorted(answer["rank"] for answer in said) == [0, 1]
    assert {(answer["ranks"], answer["host"]) for answer in said} == {(2, f"molecule-openmpi-{machine}")}

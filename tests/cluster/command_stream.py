"""Commands that a user types one after the other while an admin changes the cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.cluster.lab_cluster import Cluster, wait_until

COMMANDS = {
    "squeue": "squeue --noheader",
    "sbatch": "sbatch --parsable --mem=10M --output=/dev/null --wrap true",
    "srun": "srun --mem=10M true",
    "sacct": "sacct --noheader --allocations --format=jobid",
}
_LOOP = """\
cd ~
while [ ! -e stream.stop ]; do
  began=$(date +%s%N)
  said=$(timeout 120 {command} 2>> stream.{name}.errors)
  code=$?
  echo "$began $(date +%s%N) $code $(echo "$said" | tail -n 1 | tr -d ' ')" >> stream.{name}
  sleep 0.2
done
"""


@dataclass
class Typed:
    """The times that one command was typed: seconds each took, and its exit code."""

    seconds: list[float] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    """Those of sbatch."""
    errors: str = ""

    def __str__(self) -> str:
        failed = sum(map(bool, self.codes))
        return f"{len(self.codes)} typed, {failed} failed, the longest {max(self.seconds):.1f} s"


@contextmanager
def stream(cluster: Cluster, *names: str) -> Iterator[dict[str, Typed]]:
    """Alice types these on the login node, each again and again, as long as it lasts."""
    found = {name: Typed() for name in names}
    cluster.as_user("rm -f stream.*")
    for name in names:
        loop = _LOOP.format(name=name, command=COMMANDS[name])
        cluster.as_user(
            f"cat > stream.{name}.sh <<'END'\n{loop}END\nsetsid sh stream.{name}.sh > /dev/null 2>&1 &"
        )
    try:
        for name in names:
            wait_until(f"{name} is typed", lambda: _lines(cluster, name) != [], 60)  # noqa: B023
        yield found
        # Once more, when all is over.
        typed = {name: len(_lines(cluster, name)) for name in names}
        for name in names:
            wait_until(f"{name} is typed again", lambda: len(_lines(cluster, name)) > typed[name] + 1, 150)  # noqa: B023
    finally:
        cluster.as_user("touch stream.stop")
    for name, told in found.items():
        wait_until(f"{name} has ended", lambda: _processes(cluster, name) == "", 150)  # noqa: B023
        for line in _lines(cluster, name):
            began, ended, code, *said = line.split()
            told.seconds.append((int(ended) - int(began)) / 1e9)
            told.codes.append(int(code))
            told.jobs += said if name == "sbatch" and code == "0" else []
        told.errors = cluster.as_user(f"cat stream.{name}.errors")


def _lines(cluster: Cluster, name: str) -> list[str]:
    return cluster.as_user(f"cat stream.{name} 2> /dev/null || true").splitlines()


def _processes(cluster: Cluster, name: str) -> str:
    return cluster.as_user(f"pgrep --full 'sh stream.{name}[.]sh' || true").strip()

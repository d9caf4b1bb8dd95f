"""This version of deploy beside that of another commit: in turn, each on a lab of its own."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from deploy.place import private_place
from tests.bench.commands import Finished, run
from tests.bench.figures import THIS, Compared, Costs
from tests.bench.lab import BenchLab
from tests.bench.one_more import add_one
from tests.bench.rerun import Rerun, deploy_cluster

_ROOT = Path(__file__).parents[2]
# One pair of labs is good for many of these, and the shorter a run, the more of them it takes.
_RERUNS, _FULL_RERUNS = 7, 3
_SHORT = 7


@dataclass(frozen=True)
class Version:
    """A version of deploy, installed in its checkout."""

    name: str
    checkout: Path

    @property
    def deploy(self) -> tuple[str, ...]:
        """Its command: ``-m deploy`` would take the one that lies in the working directory."""
        return (str(self.checkout / ".venv/bin/deploy"),)


def installed(commit: str, say: Callable[[str], None]) -> Version:
    """A clone of the project as it was at a commit, with what it wants installed; kept for the next time."""
    found = run(["git", "-C", str(_ROOT), "rev-parse", "--verify", f"{commit}^{{commit}}"]).text.strip()
    place = _ROOT / ".venv/against" / found
    if not (place / ".venv/installed").exists():
        say(f"installing deploy as it was at {commit}, in {place}")
        shutil.rmtree(place, ignore_errors=True)
        run(["git", "clone", "--quiet", "--no-checkout", str(_ROOT), str(place)])
        run(["git", "-C", str(place), "checkout", "--quiet", "--detach", found])
        run(["make", "--no-print-directory", "--directory", str(place), "venv"])
    return Version(found[:_SHORT], place)


def compare(
    other: Version,
    rounds: int,
    fresh: Callable[[str], AbstractContextManager[BenchLab]],
    say: Callable[[str], None],
) -> Costs:
    """Everything of `Compared`, by both versions; each round has two fresh labs."""
    costs: dict[Compared, dict[str, list[Finished]]] = {what: {THIS: [], other.name: []} for what in Compared}
    for number in range(rounds):
        this = Version(THIS, _ROOT)
        with (
            _lab_of(this, fresh(f"{THIS}{number}")) as new,
            _lab_of(other, fresh(f"{other.name}-{number}")) as old,
        ):
            for lab in (new, old):
                lab.settle()
            labs = [(THIS, new), (other.name, old)]
            turns = Turns(labs if number % 2 else labs[::-1], costs, say)
            turns.measure(Compared.FIRST, deploy_cluster)
            for _ in range(_RERUNS):
                turns.measure(Compared.RERUN, lambda lab: Rerun(lab).deployed())
            for _ in range(_FULL_RERUNS):
                turns.measure(Compared.FULL, lambda lab: Rerun(lab).deployed("--full"))
            turns.measure(Compared.ONE_MORE, add_one)
    return costs


@dataclass
class Turns:
    """Measures both versions; the one that was the first of them is the second the next time."""

    labs: Sequence[tuple[str, BenchLab]]
    costs: dict[Compared, dict[str, list[Finished]]]
    say: Callable[[str], None]

    def measure(self, what: Compared, way: Callable[[BenchLab], Finished]) -> None:
        for name, lab in self.labs:
            finished = way(lab)
            self.costs[what][name].append(finished)
            self.say(f"{what} by {name}: {finished.seconds:.2f} s, {finished.cpu:.2f} s of CPU")
        self.labs = self.labs[::-1]


@contextmanager
def _lab_of(version: Version, fresh: AbstractContextManager[BenchLab]) -> Iterator[BenchLab]:
    """A lab for one version; its runs do not see what those of others put in memory or on disk."""
    with fresh as lab, private_place("bench") as in_memory, private_place("bench", lab.place) as on_disk:
        leave_out_unknown(lab, version)
        places = {"XDG_RUNTIME_DIR": str(in_memory), "TMPDIR": str(on_disk)}
        yield replace(lab, deploy=version.deploy, places=places)


def leave_out_unknown(lab: BenchLab, version: Version) -> None:
    """Of the lab's variables those that a version has not, which it would refuse."""
    specs = [
        yaml.safe_load(path.read_text("utf-8"))
        for path in version.checkout.glob("roles/*/meta/argument_specs.yml")
    ]
    known = {
        name for spec in specs for part in spec["argument_specs"].values() for name in part.get("options", ())
    }
    for path in (lab.site / "group_vars").glob("*.yml"):
        values = yaml.safe_load(path.read_text("utf-8"))
        path.write_text(
            yaml.safe_dump({name: value for name, value in values.items() if name in known}), "utf-8"
        )

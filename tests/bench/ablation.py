"""What each of deploy's changes inside Ansible and mitogen is worth: runs without it beside runs with all."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from deploy.run.patches import Patch
from tests.bench.commands import Finished
from tests.bench.figures import ENOUGH, NOTHING, Without, worth
from tests.bench.lab import BenchLab
from tests.bench.rerun import Rerun, deploy_cluster

_EACH = (NOTHING, *(patch.id for patch in Patch))
# What takes several times as long needs to be measured once.
_BY_FAR = Patch.MITOGEN.id


def reruns_without(lab: BenchLab, rounds: int, say: Callable[[str], None]) -> Without:
    """Full reruns of a converged cluster, in another order each round.

    Where nothing is to be done and nothing is asked for, Ansible does not run: no patch has to do with that.
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        start = number % len(_EACH)
        for which in (*_EACH[start:], *_EACH[:start]):
            if number and which == _BY_FAR:
                continue
            _note(found, "full rerun", which, Rerun(replace(lab, without=which)).deployed("--full"), say)
    return found


def first_deployments_without(
    reruns: Without, fresh: Callable[[str], AbstractContextManager[BenchLab]], say: Callable[[str], None]
) -> Without:
    """One on fresh machines for each patch that reruns did not show to be worth enough.

    And two, first and last, that leave out nothing.
    """
    open_yet = [patch.id for patch in Patch if worth(reruns["full rerun"], patch.id) < ENOUGH]
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number, which in enumerate((NOTHING, *open_yet, NOTHING)):
        with fresh(f"{which}{number}") as lab:
            _note(found, "first deployment", which, deploy_cluster(replace(lab, without=which)), say)
    return found


def _note(
    found: dict[str, dict[str, list[float]]],
    what: str,
    which: str,
    finished: Finished,
    say: Callable[[str], None],
) -> None:
    found[what][which].append(round(finished.seconds, 2))
    say(f"{what} without {which}: {finished.seconds:.1f} s")

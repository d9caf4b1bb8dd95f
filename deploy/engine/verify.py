"""Step: what hosts say of their records, and which hosts the cluster had."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from deploy.engine.members import Known
from deploy.engine.run import Run
from deploy.judge.departed import Departed


@dataclass(frozen=True)
class Looked:
    """What hosts ``said`` of themselves; which hosts controllers know, and those of them that left."""

    said: Mapping[str, Any]
    known: Mapping[str, Known]
    departed: Future[list[Departed]]


def goes_by_records(run: Run) -> bool:
    """Whether what hosts were found to be converged to is left out."""
    return run.options.is_whole and not run.options.full


def verify(run: Run, meanwhile: ThreadPoolExecutor) -> Looked:
    """Asks hosts for their records. Those that left are asked ``meanwhile``: nothing waits for them.

    Controllers are always asked: they know which hosts the cluster had.
    """
    asked = [*run.hosts, *run.controllers] if goes_by_records(run) else run.controllers
    said = run.records.verify(dict.fromkeys(asked))
    known = run.members.known(said)
    return Looked(said, known, meanwhile.submit(run.members.departed, known))

"""What is known of a node that could not be repaired, in a file for its vendor."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy import durable
from deploy.engine.options import Options
from deploy.run.journal import state_directory
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Site

_KEPT = 100


@dataclass(frozen=True)
class Case:
    """A node that stays drained, and why; what was wrong when it began; by remedy what it came to."""

    node: str
    why: str
    seen: Sequence[str]
    tried: Mapping[str, str]


def write_dossier(site: Site, options: Options, case: Case) -> Path:
    """Asks a node for what a vendor wants to know; the file, for its owner alone."""
    said = ask({case.node: ("dossier", {})}, site.hosts, options.login, source="remedies")[case.node]
    place = state_directory(site.directory) / "dossiers"
    place.mkdir(mode=0o700, exist_ok=True)
    path = place / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{case.node}.txt"
    durable.write_private(path, "\n".join(_lines(case, said)) + "\n")
    for old in sorted(place.glob("*.txt"))[:-_KEPT]:
        old.unlink(missing_ok=True)
    return path


def _lines(case: Case, said: Mapping[str, str] | Unanswered | str) -> Iterator[str]:
    tried = [f"{remedy}: {came}" for remedy, came in case.tried.items()]
    yield f"{case.node}: {case.why}"
    yield from ("", "== what was wrong", *(case.seen or ["nothing that its health check sees"]))
    yield from ("", "== what was tried", *(tried or ["nothing: no remedy is known for it"]))
    if not isinstance(said, Mapping):
        why_not = said.why if isinstance(said, Unanswered) else said
        yield from ("", "== the node itself", f"it does not say: {why_not}")
        return
    for subject, text in said.items():
        yield from ("", f"== {subject}", text)

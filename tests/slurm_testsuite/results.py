"""What came of the tests, kept on this machine after each, so that a run that was interrupted can go on."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock

from tests.slurm_testsuite.outcomes import PASSED, Outcome

_FILE = "results.jsonl"


@dataclass(frozen=True)
class Run:
    """What came of one file of tests."""

    part: str
    file: str
    alone: bool
    """Whether no other test ran on the cluster beside it."""
    seconds: float
    outcomes: tuple[Outcome, ...]


@dataclass
class Results:
    """The last run of each file, in a directory that outlives labs, and what did not pass with its output."""

    place: Path
    runs: dict[tuple[str, str], Run] = field(default_factory=dict)
    _writing: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.place.mkdir(parents=True, exist_ok=True)
        for run in _in(self.place / _FILE):
            self.runs[run.part, run.file] = run

    def keep(self, run: Run, said: str) -> None:
        """Writes it down at once."""
        log = self.place / run.part / f"{Path(run.file).name}.log"
        with self._writing:
            log.unlink(missing_ok=True)
            if any(outcome.state != PASSED for outcome in run.outcomes):
                log.parent.mkdir(exist_ok=True)
                log.write_text(said, encoding="utf-8")
            with (self.place / _FILE).open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(run)) + "\n")
            self.runs[run.part, run.file] = run


def _in(file: Path) -> Iterator[Run]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in lines:
        run = json.loads(line)
        yield Run(**{**run, "outcomes": tuple(Outcome(**outcome) for outcome in run["outcomes"])})

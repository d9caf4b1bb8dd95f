"""Rounds: a run is killed at a moment that chance decides, and what comes after it is looked at."""

import os
import random
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deploy.place import NEW_SECONDS
from tests.cluster.jobs import UNTIL_TOLD, submit, wait_for_job
from tests.cluster.lab_cluster import DEPLOY, Cluster, Result
from tests.kills.figures import Found
from tests.kills.lab import vary
from tests.kills.leftovers import (
    MARK,
    Looks,
    half_written,
    kill,
    left,
    looks,
    managed,
    of_the_site,
    private_places,
    processes,
    unparsed,
)

FIRST, CHANGE, FAILOVER = "first", "change", "failover"
KINDS = {
    FIRST: "a first deployment, on machines that have nothing",
    CHANGE: "a change that touches all hosts",
    FAILOVER: "`deploy failover`",
}
_UNTIL_GONE = 120
_UNTIL_WELL = 240
_POLL = 2


@dataclass
class Ground:
    """Where the runs are typed: their temporary directories are their own, so that none passes unseen."""

    cluster: Cluster
    place: Path
    say: Callable[[str], None]
    took: dict[str, float] = field(default_factory=dict)
    """By kind for how long a run lasts."""
    job: str = ""
    """One that runs on while deploy is killed."""

    def __post_init__(self) -> None:
        for path in self.places:
            path.mkdir(mode=0o700, exist_ok=True)

    @property
    def places(self) -> list[Path]:
        """On disk, in memory, and what deploy keeps of runs."""
        return [self.place / "temporary", self._memory, self.place / "state"]

    @property
    def _memory(self) -> Path:
        return Path("/dev/shm") / self.cluster.name

    def environment(self, mark: str) -> dict[str, str]:
        """That of a run of this mark."""
        temporary, memory, state = map(str, self.places)
        return {
            **os.environ,
            "TMPDIR": temporary,
            "XDG_RUNTIME_DIR": memory,
            "XDG_STATE_HOME": state,
            MARK: mark,
        }

    def words(self, kind: str) -> list[str]:
        """What is typed."""
        verb = ("failover", str(self.cluster.inventory), "--yes")
        deploy = ("cluster", str(self.cluster.inventory), "--output", "plain", "--no-validate", "--yes")
        return [*DEPLOY, *(verb if kind == FAILOVER else deploy)]

    def typed(self, *words: str) -> Result:
        """A run that nobody kills."""
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
            env=self.environment("none"),
        )

    def long_job(self) -> None:
        """Has a job run on from now."""
        self.cluster.as_user("rm -f stop")
        self.job = submit(self.cluster, "--mem=50M", UNTIL_TOLD)
        wait_for_job(self.cluster, self.job, "RUNNING", seconds=180)


@dataclass
class Round:
    """One kill; ``chance`` decides when, and whether only deploy itself dies."""

    ground: Ground
    kind: str
    number: int
    chance: random.Random
    troubles: list[str] = field(default_factory=list)

    def play(self) -> Found:
        """Kills a run, types it again, and says what came of it."""
        ground, cluster = self.ground, self.ground.cluster
        if self.kind == CHANGE:
            vary(cluster, self.number)
        before, began = looks(cluster, time.time()), time.time()
        mark = f"{cluster.name}-{self.number}"
        all_of_them = self.chance.random() < 0.5
        moment = self.chance.uniform(0, ground.took[self.kind])
        is_killed = self._killed(mark, moment, all_of_them=all_of_them)
        self._gone(mark)
        seen = looks(cluster, began)
        self.troubles += [f"{host}: does not parse: {what}" for host, what in unparsed(seen)]
        self.troubles += [f"here: {what}" for what in of_the_site(cluster, [ground.places[2]])]
        well = self._again()
        self._converged()
        after = self._rested(before, began)
        files = managed(cluster)
        half = half_written(files, before, seen, after, is_first=self.kind == FIRST)
        self.troubles += [f"{host}: {path} was neither as before nor as afterwards" for host, path in half]
        self.troubles += [f"{host}: left: {what}" for host, what in left(before, after)]
        self.troubles += [f"here: {what}" for what in of_the_site(cluster, [ground.places[2]])]
        self.troubles += [f"here: left: {path}" for path in private_places(ground.places[:2])]
        self._job()
        return Found(
            self.kind,
            round(moment, 1),
            is_killed,
            all_of_them,
            round(well, 1),
            list(dict.fromkeys(self.troubles)),
        )

    def _killed(self, mark: str, moment: float, *, all_of_them: bool) -> bool:
        """Whether it ran still when its moment came."""
        began = time.monotonic()
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                self.ground.words(self.kind),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=self.ground.environment(mark),
                start_new_session=True,
            )
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                kill(process.pid, mark, all_of_them=all_of_them)
            process.wait()
            if process.returncode not in {0, -signal.SIGKILL}:
                said.seek(0)
                self.troubles.append(f"exit code {process.returncode}: {said.read().decode()[-1500:]}")
        if process.returncode == 0:
            self.ground.took[self.kind] = time.monotonic() - began
        return process.returncode == -signal.SIGKILL

    def _gone(self, mark: str) -> None:
        if _waited(lambda: not processes(mark), _UNTIL_GONE):
            return
        for number, words in processes(mark).items():
            self.troubles.append(f"here: still runs after {_UNTIL_GONE} s: {words[:150]}")
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def _rested(self, before: Looks, began: float) -> Looks:
        """What hosts say when nothing of a run is left there, or as they are where that does not come."""
        said: list[Looks] = []

        def is_clean() -> bool:
            said.append(looks(self.ground.cluster, began))
            return not any(left(before, said[-1]))

        _waited(is_clean, _UNTIL_GONE)
        return said[-1]

    def _again(self) -> float:
        """Types the same until it succeeds; for how many seconds."""
        began = time.monotonic()
        while True:
            done = self.ground.typed(*self.ground.words(self.kind))
            took = time.monotonic() - began
            if done.returncode == 0:
                return took
            why = (done.stdout[-1500:] + done.stderr[-1500:]).strip()
            if self.kind != FAILOVER or took > _UNTIL_WELL:
                self.troubles.append(f"typed again it ended with {done.returncode}: {why}")
                return took
            # Slurm itself takes its time until somebody leads.
            time.sleep(_POLL)

    def _converged(self) -> None:
        """Nothing is left to do, and the first controller leads."""
        inventory = str(self.ground.cluster.inventory)
        if self.kind == FAILOVER:
            done = self.ground.typed(*DEPLOY, "failback", inventory, "--yes")
            if done.returncode:
                self.troubles.append(f"failback ended with {done.returncode}: {done.stderr[-1500:]}")
        # A run takes what a killed one left for left over when it has been there for a while.
        while_ago = time.time() - 2 * NEW_SECONDS
        for path in private_places(self.ground.places[:2]):
            os.utime(path, (while_ago, while_ago))
        done = self.ground.typed(*self.ground.words(CHANGE))
        if done.returncode or "converged" not in done.stdout or "(0 changes" not in done.stdout:
            why = (done.stdout[-1500:] + done.stderr[-500:]).strip()
            self.troubles.append(f"there was something left to do ({done.returncode}): {why}")

    def _job(self) -> None:
        """The job that was there runs, and was never started again."""
        if self.ground.job:
            shown = self.ground.cluster.on("ctl1", "scontrol", "show", "job", self.ground.job, expect=None)
            if "JobState=RUNNING" not in shown or "Restarts=0" not in shown:
                self.troubles.append(f"job {self.ground.job} does not run on: {shown[:400]}")


def _waited(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it came to that within so many seconds."""
    deadline = time.monotonic() + seconds
    while not (is_so := condition()) and time.monotonic() < deadline:
        time.sleep(_POLL)
    return is_so


def measured(ground: Ground) -> Iterator[tuple[str, float]]:
    """For how long a change and a failover last here, by one of each that nobody kills."""
    vary(ground.cluster, 1)
    for kind in (CHANGE, FAILOVER):
        began = time.monotonic()
        done = ground.typed(*ground.words(kind))
        if done.returncode:
            message = f"{kind}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
            raise RuntimeError(message)
        yield kind, time.monotonic() - began
    done = ground.typed(*DEPLOY, "failback", str(ground.cluster.inventory), "--yes")
    if done.returncode:
        raise RuntimeError(done.stderr)


def shares(kills: int, kinds: Mapping[str, str]) -> list[str]:
    """The kinds of so many rounds: first deployments come first, and are few, as each takes new machines."""
    weights = {FIRST: 1, CHANGE: 2, FAILOVER: 2}
    total = sum(weights[kind] for kind in kinds)
    counts = {kind: kills * weights[kind] // total for kind in kinds}
    for kind in [kind for kind in (CHANGE, FAILOVER, FIRST) if kind in kinds] * kills:
        if sum(counts.values()) < kills:
            counts[kind] += 1
    return [kind for kind in KINDS for _ in range(counts.get(kind, 0))]

"""Rounds: power is lost at a random moment, comes back, and everything has to run without a hand."""

import random
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.lab_cluster import DEPLOY, Cluster, Result
from tests.power.figures import Fate, Job, counted, fates
from tests.power.lab import CONTROLLER, HOSTS, LOGIN, NODES, TOOLS, vary
from tests.power.watch import Watch, at_once

ALL, LATE, NODE, ALONE, DEPLOYMENT = "all", "controller-late", "node", "controller", "deployment"
_LATER = 120
_AWAY = (5, 60)
_BETWEEN = (0, 10)
_SOON = (5, 30)
_BEFORE = (0, 10)
_AWHILE = f"{_AWAY[0]} to {_AWAY[1]} s"
KINDS = {
    ALL: "all machines, which have it again in a random order",
    LATE: f"all machines; the controller with `/home` has it again {_LATER} s after the last of the others",
    NODE: f"a node with jobs, for {_AWHILE}",
    ALONE: f"the controller alone, which serves `/home`, for {_AWHILE}, while jobs run on the nodes",
    DEPLOYMENT: "a node in the midst of `deploy cluster`, which has it again before or after that run ends",
}
_UNTIL_RUNNING = 300
_UNTIL_WELL = 600
_UNTIL_ENDED = 400
_A_RUN_ENDS = 900
_PLACE = "/home/alice/power"
_STATE = "/var/spool/slurmctld/job_state"
_QUEUE = """
sinfo --noheader --partition=main --Node --format='%N %t' | tr -d '* '
squeue --noheader --format='%j %T %r'
sdiag | grep 'DBD Agent queue size'
"""
_ALL_OVER = [*(f"{node}idle" for node in NODES), "DBD Agent queue size: 0"]
_CHANGES = re.compile(r"\((\d+) changes?")


@dataclass
class Round:
    """One loss of power; ``chance`` decides what is lost, when, and in which order it is back."""

    watch: Watch
    kind: str
    number: int
    chance: random.Random
    say: Callable[[str], None]
    took: float
    """How long a deployment of this kind lasts, as far as that is known."""
    did: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    well: float | None = None
    """Seconds until all was well by itself."""
    is_beyond_help: bool = False
    """Whether the lab is not well by hand, either."""
    began: float = field(default_factory=time.monotonic)

    @property
    def cluster(self) -> Cluster:
        """The lab."""
        return self.watch.cluster

    def play(self) -> dict[str, Any]:
        """Takes the power away, gives it back, and says what came of it."""
        found: list[Fate] = []
        changes = 0
        try:
            self._lose()
            self._get_well()
            if not self.is_beyond_help:
                _, changes = at_once(self._end_jobs, self._converges)
                found = self._found()
                self._takes_a_job()
        except (AssertionError, subprocess.TimeoutExpired) as problem:
            self.troubles.append(f"broke off: {problem}"[:3000])
            self._help()
        return {
            "number": self.number,
            "did": self.did,
            "well": self.well,
            "lasted": round(time.monotonic() - self.began, 1),
            "jobs": counted(found),
            "changes": changes,
            "by_hand": self.by_hand,
            "troubles": self.troubles,
        }

    def _lose(self) -> None:
        lost = self._chosen()
        if self.kind == DEPLOYMENT:
            at_once(lambda: self._prepare(lost), lambda: self._take_packages(*lost))
        else:
            self._prepare(lost)
        {ALL: self._all, LATE: self._all, NODE: self._one, ALONE: self._one, DEPLOYMENT: self._deployment}[
            self.kind
        ](lost)

    def _found(self) -> list[Fate]:
        written, rows = at_once(self._written, self._rows)
        found = fates(self.jobs, rows, *(_those(written, what) for what in ("begun", "ended")))
        self.troubles += [fate.trouble for fate in found if fate.trouble]
        self._note_just_taken(found)
        return found

    def _chosen(self) -> tuple[str, ...]:
        if self.kind in {ALL, LATE}:
            return tuple(self.chance.sample(HOSTS, len(HOSTS)))
        return (CONTROLLER,) if self.kind == ALONE else (self.chance.choice(NODES),)

    def _note(self, what: str) -> None:
        self.did.append(what)
        self._tell(what)

    def _tell(self, what: str) -> None:
        self.say(f"  {time.monotonic() - self.began:.0f} s: {what}")

    # What is there when the power goes.

    def _prepare(self, lost: Sequence[str]) -> None:
        """A job that ended, jobs that run, one that waits for all of both nodes, one that was just taken."""
        over = self._job("over", lost)
        runs = f"until test -e {self._stop}; do sleep 2; done"
        begin = [f"mkdir -p {_PLACE}", f"rm -f {_PLACE}/*", self._sbatch(over, "true")]
        for node in NODES:
            here = f"--nodelist={node}"
            begin.append(self._sbatch(self._job(f"requeues-{node}", lost, node), runs, here))
            once = self._job(f"once-{node}", lost, node, requeues=False)
            begin.append(self._sbatch(once, runs, f"{here} --no-requeue"))
        self._typed_by_alice(*begin)
        there = {("begun", job.name) for job in self.jobs} | {("ended", over.name)}
        self._need("jobs run", lambda: there <= {*self._written()})
        count = f"squeue --noheader --name={over.name} | wc -l"
        self._need("a job is over", lambda: self.watch.asked(CONTROLLER, "sh", "-c", count).strip() == "0")
        waits, changes = self._job("waits", lost), self._job("changes", lost)
        mark = f"{_PLACE}/submitted"
        # A change makes slurmctld save again, after what was submitted before it.
        self._typed_by_alice(
            self._sbatch(waits, "true", f"--nodes={len(NODES)} --mem=0"),
            f"touch {mark}",
            self._sbatch(changes, "true", "--hold --nodelist=node1"),
            host=CONTROLLER,
        )
        self.jobs.remove(changes)
        saved = f"find {_STATE} -newer {mark} | grep -q . && scancel --name={changes.name} && echo saved"
        self._need(
            "slurmctld has saved its queue", lambda: bool(self.watch.asked(CONTROLLER, "sh", "-c", saved))
        )
        self._tell("jobs are there")
        time.sleep(self.chance.uniform(*_BEFORE))
        self._typed_by_alice(self._sbatch(self._job("just-taken", lost, is_settled=False), "true"))

    @property
    def _stop(self) -> str:
        """The file that ends jobs on a node; gone after a boot."""
        return f"/run/power-{self.number}-{int(self.began)}"

    def _job(
        self,
        what: str,
        lost: Sequence[str],
        node: str = "",
        *,
        requeues: bool = True,
        is_settled: bool = True,
    ) -> Job:
        made = Job(f"r{self.number}-{int(self.began)}-{what}", node in lost, requeues, is_settled)
        self.jobs.append(made)
        return made

    def _sbatch(self, job: Job, work: str, options: str = "") -> str:
        # By NFS, two hosts must not write to one file.
        file = f"{_PLACE}/\\$SLURMD_NODENAME"
        begun, ended = (f"echo {what} {job.name} >>{file}" for what in ("begun", "ended"))
        return (
            f"sbatch --quiet --mem=30 --time=60 --output=/dev/null --chdir=/ --job-name={job.name}"
            f' {options} --wrap "{begun}; {work}; {ended}"'
        )

    def _typed_by_alice(self, *lines: str, host: str = LOGIN) -> None:
        self.cluster.as_user(" && ".join(lines), host=host, seconds=300)

    def _need(self, what: str, condition: Callable[[], bool]) -> None:
        assert self.watch.wait(what, condition, _UNTIL_RUNNING), f"not within {_UNTIL_RUNNING} s: {what}"

    # How it is lost and how it comes back.

    def _off(self, hosts: Sequence[str]) -> None:
        self.cluster.power_off(*hosts)
        self._note(f"off: {', '.join(hosts)}")

    def _on(self, host: str) -> None:
        self.cluster.power_on(host)
        self._note(f"on: {host}")

    def _all(self, lost: Sequence[str]) -> None:
        self._off(lost)
        back = self.chance.sample(lost, len(lost))
        if self.kind == LATE:
            back = [host for host in back if host != CONTROLLER]
        time.sleep(self.chance.uniform(*_BETWEEN))
        for host in back:
            self._on(host)
            time.sleep(self.chance.uniform(*_BETWEEN))
        if self.kind == LATE:
            time.sleep(_LATER)
            self._on(CONTROLLER)

    def _one(self, lost: Sequence[str]) -> None:
        self._off(lost)
        if self.kind == ALONE:
            # Some jobs end while nobody is there to be told of it; the others run on.
            self._stop_jobs([self.chance.choice(NODES)])
        time.sleep(self.chance.uniform(*_AWAY))
        self._on(*lost)

    def _take_packages(self, node: str) -> None:
        """So that the deployment has dpkg work there."""
        self.cluster.on(node, "apt-get", "purge", "--quiet=2", "--yes", "chrony", *TOOLS, seconds=300)

    def _deployment(self, lost: Sequence[str]) -> None:
        (node,) = lost
        vary(self.cluster, self.number + 1)
        moment = self.chance.uniform(0, self.took)
        with tempfile.NamedTemporaryFile() as output:
            process = subprocess.Popen(
                self._typed(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            try:
                process.wait(moment)
            except subprocess.TimeoutExpired:
                self._note(f"{moment:.0f} s after `deploy cluster` began: {_phase(_text(output.name))}")
            else:
                self._note(f"`deploy cluster` had ended before {moment:.0f} s")
            self._off(lost)
            since = time.monotonic()
            is_soon_back = self.chance.random() < 0.5
            if is_soon_back:
                time.sleep(self.chance.uniform(*_SOON))
                self._on(node)
            said = self._ended(process, output.name, since)
        if not is_soon_back:
            self._on(node)
        self._again(said)

    def _ended(self, process: "subprocess.Popen[bytes]", output: str, lost: float) -> str:
        """What it said in all."""
        try:
            process.wait(_A_RUN_ENDS)
        except subprocess.TimeoutExpired:
            self.troubles.append(f"deploy did not end within {_A_RUN_ENDS} s after its node was lost")
            process.kill()
            process.wait()
        after = f"{time.monotonic() - lost:.0f} s"
        self._note(f"the run ended with {process.returncode}, {after} after its node was lost")
        if "Traceback" in _text(output):
            self.troubles.append(f"a traceback: {_text(output)[-2000:]}")
        return _text(output)

    def _again(self, said: str) -> None:
        """The same typed again, when the node can be reached."""
        self.watch.wait("the node can be reached", lambda: self.watch.answers(*NODES), _UNTIL_WELL)
        began = time.monotonic()
        done = self._typed_now()
        if done.returncode:
            self.troubles.append(
                f"typed again it ended with {done.returncode}: {done.stdout[-2500:]}{done.stderr[-1500:]};"
                f" before: {said[-1500:]}"
            )
        self._note(f"typed again it ended with {done.returncode} after {time.monotonic() - began:.0f} s")
        self.took = max(self.took, time.monotonic() - began)

    # Until all is well.

    def _get_well(self) -> None:
        since = time.monotonic()
        wrong = self._not_well()
        if not wrong:
            self.well = round(time.monotonic() - since, 1)
            self._note("all is well")
            return
        self._note(f"not well: {'; '.join(wrong)}")
        self.troubles.append(f"not well by itself after {_UNTIL_WELL} s: {'; '.join(wrong)}")
        self._help()

    def _not_well(self) -> list[str]:
        """What is wrong when everybody has waited long enough."""
        wrong: list[str] = ["not looked at"]

        def is_well() -> bool:
            wrong[:] = self.watch.wrong()
            return not wrong

        self.watch.wait("all is well", is_well, _UNTIL_WELL)
        return wrong

    def _help(self) -> None:
        """What somebody would do who finds it like this."""
        for host in HOSTS:
            if self.cluster.is_off(host):
                self._on(host)
        self.watch.wait("all can be reached", lambda: self.watch.answers(*HOSTS), _UNTIL_WELL)
        self.watch.asked(CONTROLLER, "scancel", "--user", "alice")
        self.by_hand.append("deploy cluster")
        done = self._typed_now()
        self._note(f"deploy cluster ended with {done.returncode}")
        if wrong := self._not_well():
            self.troubles.append(f"not well after deploy cluster, either: {'; '.join(wrong)}")
            self.is_beyond_help = True

    # What came of it.

    def _end_jobs(self) -> int:
        """The last of a lost node is started again a while later. Gives how many there were."""
        self._stop_jobs(NODES)

        def asked() -> list[str]:
            return [line.strip() for line in self.watch.asked(CONTROLLER, "sh", "-c", _QUEUE).splitlines()]

        if not self.watch.wait("all jobs are over", lambda: asked() == _ALL_OVER, _UNTIL_ENDED):
            self.troubles.append(f"jobs do not end: {'; '.join(asked())}")
            self.watch.asked(CONTROLLER, "scancel", "--user", "alice")
        self._tell("jobs are over")
        return len(self.jobs)

    def _stop_jobs(self, nodes: Sequence[str]) -> None:
        stop = ("sh", "-c", f"touch {self._stop} && echo done")
        said = at_once(*(lambda node=node: self.watch.asked(node, *stop, seconds=60) for node in nodes))
        self.troubles += [
            f"root cannot work on {node}" for node, done in zip(nodes, said, strict=True) if not done
        ]

    def _rows(self) -> list[tuple[str, str]]:
        """Names of jobs and their states, the oldest first."""
        words = ("sacct", "--allusers", "--allocations", "--duplicates", "--noheader", "--parsable2")
        more = ("--starttime=now-2hours", "--format=JobName%60,State,Start")
        lines = [line.split("|") for line in self.cluster.on(CONTROLLER, *words, *more).splitlines()]
        return [(name, state) for name, state, _ in sorted(lines, key=lambda line: line[2])]

    def _written(self) -> list[tuple[str, str]]:
        """What jobs wrote: ``begun`` and ``ended``, with their names."""
        lines = self.cluster.on(CONTROLLER, "sh", "-c", f"cat {_PLACE}/node*", expect=None).splitlines()
        return [(what, name) for what, _, name in (line.partition(" ") for line in lines)]

    def _note_just_taken(self, found: Sequence[Fate]) -> None:
        for fate in found:
            if not fate.job.is_settled:
                self._note(f"the job taken right before it: {fate.came}")

    def _converges(self) -> int:
        """How many changes the next run makes."""
        done = self._typed_now()
        changes = _CHANGES.search(done.stdout)
        self._note(f"the next run ended with {done.returncode}, changes: {changes[1] if changes else '?'}")
        if done.returncode or not changes:
            self.troubles.append(
                f"the next run: {done.returncode}: {done.stdout[-2500:]}{done.stderr[-1500:]}"
            )
            return 0
        if changes[1] != "0":
            self._note(done.stdout[-1500:])
        return int(changes[1])

    def _takes_a_job(self) -> None:
        said = self.cluster.as_user(f"srun --quiet --nodes={len(NODES)} hostname", host=LOGIN, expect=None)
        if sorted(said.split()) != sorted(NODES):
            self.troubles.append(f"a job on all nodes: {said[-500:]}")

    def _typed(self) -> list[str]:
        inventory = str(self.cluster.inventory)
        return [*DEPLOY, "cluster", inventory, "--output", "plain", "--no-validate", "--yes"]

    def _typed_now(self) -> Result:
        words = self._typed()
        try:
            return subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_A_RUN_ENDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Result(words, 124, "", f"it did not end within {_A_RUN_ENDS} s")


def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8", errors="replace")


def _phase(said: str) -> str:
    """The phase that a run was in."""
    return next((line[3:] for line in reversed(said.splitlines()) if line.startswith("== ")), "no phase yet")


def _those(written: Sequence[tuple[str, str]], what: str) -> list[str]:
    return [name for word, name in written if word == what]

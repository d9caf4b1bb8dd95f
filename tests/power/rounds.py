"""Rounds: power is lost at a random moment, comes back, and everything has to run without a hand."""

import random
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.lab_cluster import DAEMONS, DEPLOY, Cluster, Result
from tests.power.figures import Fate, Job, counted, fates
from tests.power.lab import CONTROLLER, HOSTS, LOGIN, NODES, TOOLS, vary

ALL, LATE, NODE, ALONE, DEPLOYMENT = "all", "controller-late", "node", "controller", "deployment"
_LATER = 120
KINDS = {
    ALL: "all machines, which have it again in a random order",
    LATE: f"all machines; the controller with `/home` has it again {_LATER} s after the last of the others",
    NODE: "a node with jobs, for 5 to 90 s",
    ALONE: "the controller alone, which serves `/home`, for 5 to 90 s, while jobs run on the nodes",
    DEPLOYMENT: "a node in the midst of `deploy cluster`, which has it again before or after that run ends",
}
_AWAY = (5, 90)
_BETWEEN = (0, 20)
_SOON = (5, 30)
_BEFORE = (0, 10)
_UNTIL_RUNNING = 300
_UNTIL_WELL = 600
_UNTIL_ENDED = 400
_A_RUN_ENDS = 900
_POLL = 3
_PLACE = "/home/alice/power"
_WELL = ("idle", "mix", "alloc", "comp", "plnd")
_STATE = "/var/spool/slurmctld/job_state"
_LOOKS = f"""
systemctl is-system-running
echo $(systemctl --failed --plain --no-legend | cut -d' ' -f1)
echo /home: $(findmnt --noheadings --output=FSTYPE /home)
echo $(systemctl is-active {" ".join(DAEMONS)})
"""
_LINES = 4
_CHANGES = re.compile(r"\((\d+) changes?")


@dataclass
class Round:
    """One loss of power; ``chance`` decides what is lost, when, and in which order it is back."""

    cluster: Cluster
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
    began: float = field(default_factory=time.monotonic)

    def play(self) -> dict[str, Any]:
        """Takes the power away, gives it back, and says what came of it."""
        stood = {host: self._look(host) for host in HOSTS}
        lost = self._chosen()
        self._prepare(lost)
        {ALL: self._all, LATE: self._all, NODE: self._one, ALONE: self._one, DEPLOYMENT: self._deployment}[
            self.kind
        ](lost)
        since = time.monotonic()
        self._get_well(stood)
        well = time.monotonic() - since
        self._end_jobs()
        found = fates(self.jobs, self._rows(), self._lines("begun"), self._lines("ended"))
        self.troubles += [fate.trouble for fate in found if fate.trouble]
        self._note_just_taken(found)
        changes = self._converges()
        self._takes_a_job()
        return {
            "number": self.number,
            "did": self.did,
            "well": round(well, 1),
            "lasted": round(time.monotonic() - self.began, 1),
            "jobs": counted(found),
            "changes": changes,
            "by_hand": self.by_hand,
            "troubles": self.troubles,
        }

    def _chosen(self) -> tuple[str, ...]:
        if self.kind in {ALL, LATE}:
            return tuple(self.chance.sample(HOSTS, len(HOSTS)))
        return (CONTROLLER,) if self.kind == ALONE else (self.chance.choice(NODES),)

    def _note(self, what: str) -> None:
        self.did.append(what)
        self.say(f"  {time.monotonic() - self.began:.0f} s: {what}")

    # What is there when the power goes.

    def _prepare(self, lost: Sequence[str]) -> None:
        """A job that ended, jobs that run, one that waits for all of both nodes, one that was just taken."""
        cluster = self.cluster
        cluster.as_user(f"mkdir -p {_PLACE}; rm -f {_PLACE}/*")
        over = self._job("over", lost)
        self._submit((over, "true", "--wait"))
        runs = f"until test -e {self._stop}; do sleep 2; done"
        jobs = []
        for node in NODES:
            jobs.append((self._job(f"requeues-{node}", lost, node), runs, f"--nodelist={node}"))
            once = self._job(f"once-{node}", lost, node, requeues=False)
            jobs.append((once, runs, f"--nodelist={node} --no-requeue"))
        self._submit(*jobs)
        self._wait("jobs run", lambda: self._run_all(jobs), _UNTIL_RUNNING)
        self._submit((self._job("waits", lost), "true", f"--nodes={len(NODES)} --mem=0"))
        cluster.on(CONTROLLER, "touch", "/run/submitted")
        newer = ("find", _STATE, "-newer", "/run/submitted")
        # A change makes slurmctld save again, after what was submitted before it.
        self._submit((self._job("changes", lost), "true", "--hold --nodelist=node1"))
        self._wait(
            "slurmctld has saved its queue", lambda: bool(cluster.on(CONTROLLER, *newer)), _UNTIL_RUNNING
        )
        cluster.on(CONTROLLER, "scancel", "--name", self.jobs.pop().name)
        time.sleep(self.chance.uniform(*_BEFORE))
        self._submit((self._job("just-taken", lost, is_settled=False), "true", ""))

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

    def _submit(self, *jobs: tuple[Job, str, str]) -> None:
        lines = [f"cd {_PLACE}"]
        for job, work, options in jobs:
            # By NFS, two hosts must not write to one file.
            begun, ended = (f"{_PLACE}/{what}-\\$SLURMD_NODENAME" for what in ("begun", "ended"))
            program = f"echo {job.name} >>{begun}; {work}; echo {job.name} >>{ended}"
            lines.append(
                f"sbatch --quiet --mem=30 --time=60 --output=/dev/null --chdir=/ --job-name={job.name}"
                f' {options} --wrap "{program}"'
            )
        self.cluster.as_user(" && ".join(lines), seconds=300)

    def _run_all(self, jobs: Sequence[tuple[Job, str, str]]) -> bool:
        return {job.name for job, _, _ in jobs} <= {*self._lines("begun")}

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

    def _deployment(self, lost: Sequence[str]) -> None:
        (node,) = lost
        self.cluster.on(node, "apt-get", "purge", "--quiet=2", "--yes", "chrony", *TOOLS, seconds=300)
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
            is_soon_back = self.chance.random() < 0.5
            if is_soon_back:
                time.sleep(self.chance.uniform(*_SOON))
                self._on(node)
            said = self._ended(process, output.name)
        if not is_soon_back:
            self._on(node)
        self._again(said)

    def _ended(self, process: "subprocess.Popen[bytes]", output: str) -> str:
        """What it said in all."""
        try:
            process.wait(_A_RUN_ENDS)
        except subprocess.TimeoutExpired:
            self.troubles.append(f"deploy did not end within {_A_RUN_ENDS} s after its node was lost")
            process.kill()
            process.wait()
        self._note(f"the run ended with {process.returncode}")
        if "Traceback" in _text(output):
            self.troubles.append(f"a traceback: {_text(output)[-2000:]}")
        return _text(output)

    def _again(self, said: str) -> None:
        """The same typed again, when the node can be reached."""
        began = time.monotonic()
        self._wait("the node can be reached", lambda: self._answers(*NODES), _UNTIL_WELL)
        done = self._typed_now()
        if done.returncode:
            self.troubles.append(
                f"typed again it ended with {done.returncode}: {done.stdout[-2500:]}{done.stderr[-1500:]};"
                f" before: {said[-1500:]}"
            )
        self._note(f"typed again it ended with {done.returncode} after {time.monotonic() - began:.0f} s")
        self.took = max(self.took, time.monotonic() - began)

    # Until all is well.

    def _get_well(self, stood: Mapping[str, Sequence[str]]) -> None:
        wrong: list[str] = ["not looked at"]

        def is_well() -> bool:
            wrong[:] = self._wrong(stood)
            return not wrong

        if self._wait("all is well", is_well, _UNTIL_WELL):
            self._note("all is well")
            return
        self._note(f"not well: {'; '.join(wrong)}")
        self.troubles.append(f"not well by itself after {_UNTIL_WELL} s: {'; '.join(wrong)}")
        self.by_hand.append("deploy cluster")
        done = self._typed_now()
        self._note(f"deploy cluster ended with {done.returncode}")
        if not self._wait("all is well after deploy cluster", is_well, _UNTIL_WELL):
            message = f"round {self.number}: the lab does not come back: {'; '.join(wrong)}"
            raise RuntimeError(message)

    def _wrong(self, stood: Mapping[str, Sequence[str]]) -> list[str]:
        """What is not as it was before."""
        found = []
        for host in HOSTS:
            said = self._look(host)
            if len(said) < _LINES:
                found.append(f"{host} does not answer")
                continue
            found += [
                f"{host}: {now or 'no failed unit'}"
                for now, was in zip(said, stood[host], strict=True)
                if now != was
            ]
        states = self._states()
        found += [
            f"{node} is {states.get(node, 'unknown')}" for node in NODES if states.get(node) not in _WELL
        ]
        return found

    def _look(self, host: str) -> list[str]:
        """Whether all of it has booted, what has failed, what /home is, which daemons run."""
        return [line.strip() for line in self._asked(host, "sh", "-c", _LOOKS).splitlines()]

    def _states(self) -> dict[str, str]:
        words = ("sinfo", "--noheader", "--partition=main", "--Node", "--format=%N %t")
        lines = [line.split() for line in self._asked(CONTROLLER, *words).splitlines()]
        return {line[0]: line[1].rstrip("*") for line in lines if len(line) == 2}

    def _answers(self, *hosts: str) -> bool:
        return all(self._asked(host, "echo", "here") for host in hosts)

    # What came of it.

    def _end_jobs(self) -> None:
        self._stop_jobs(NODES)

        def asked() -> str:
            return self._asked(CONTROLLER, "squeue", "--noheader", "--format=%j %T %r")

        def are_over() -> bool:
            owed = "DBD Agent queue size: 0" in self._asked(CONTROLLER, "sdiag")
            return not asked() and owed and {*self._states().values()} == {"idle"}

        if not self._wait("all jobs are over", are_over, _UNTIL_ENDED):
            self.troubles.append(f"jobs do not end: {asked()}; {self._states()}")
            self._asked(CONTROLLER, "scancel", "--user", "alice")

    def _stop_jobs(self, nodes: Sequence[str]) -> None:
        for node in nodes:
            if not self._asked(node, "sh", "-c", f"touch {self._stop} && echo done"):
                self.troubles.append(f"root cannot work on {node}")

    def _rows(self) -> Iterator[tuple[str, str]]:
        words = ("sacct", "--allusers", "--allocations", "--duplicates", "--noheader", "--parsable2")
        more = ("--starttime=now-2hours", "--format=JobName%60,State,Start")
        lines = [line.split("|") for line in self.cluster.on(CONTROLLER, *words, *more).splitlines()]
        for name, state, _ in sorted(lines, key=lambda line: line[2]):
            yield name, state

    def _lines(self, file: str) -> list[str]:
        return self._asked(CONTROLLER, "sh", "-c", f"cat {_PLACE}/{file}-*").split()

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
        return subprocess.run(
            self._typed(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800, check=False
        )

    def _asked(self, host: str, *words: str) -> str:
        """What a host says; nothing where it does not answer."""
        try:
            return self.cluster.on(host, "timeout", "15", *words, expect=None, seconds=30)
        except subprocess.TimeoutExpired:
            return ""

    def _wait(self, what: str, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.say(f"  after {seconds:.0f} s still not: {what}")
                return False
            time.sleep(_POLL)
        return True


def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8", errors="replace")


def _phase(said: str) -> str:
    """The phase that a run was in."""
    return next((line[3:] for line in reversed(said.splitlines()) if line.startswith("== ")), "no phase yet")

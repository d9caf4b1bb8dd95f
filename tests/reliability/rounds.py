"""One round: a cluster under load, a fault at a random moment, and everything counted when it is over."""

import random
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from deploy.lab.state import SHARED_STATE, container_name
from tests.cluster.lab_cluster import Cluster, run, wait_until
from tests.reliability.faults import FAULTS, Fault, Place
from tests.reliability.figures import Asked, Fates, fates, longest_without, unsaved
from tests.reliability.lab import (
    CONTROLLERS,
    DATABASE,
    HEALTH_CHECK_SECONDS,
    HOSTS,
    NODES,
    STATE,
    has_whole_database,
    state_on_this_machine,
)
from tests.reliability.load import PLACE, Load
from tests.reliability.usage import usage_of
from tests.reliability.writers import Write, returned, terms, watched

Row = tuple[str, str, int]
RUNNING = 40
"""Jobs that run on from before the fault until after it."""
SLURM_HELD = ("a node resumed that Slurm had drained", "a job released that Slurm held")
_UNTIL_TAKEN = 300
_UNTIL_WELL = 400
UNTIL_TOLD = 600
"""In labs Slurm asks nodes what runs there after 200 s; what is started again waits for 120 s."""
_UNTIL_COMMITTED = 60
"""For a row that slurmdbd was told of; later no more comes."""
_BEFORE = (3, 10)
_WELL = ("idle", "mix", "alloc", "comp")
_OLD = 20
"""Seconds; a heartbeat comes every two and a half with the SlurmctldTimeout of labs."""
_HEARTBEAT = struct.Struct(">QQ")


@dataclass
class Round:
    """A fault on a cluster; ``chance`` decides when, for how long, and in which order."""

    cluster: Cluster
    key: str
    chance: random.Random
    number: int
    say: Callable[[str], None]
    writes: list[Write] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)
    span: tuple[float, float] = (0, 0)
    """When the fault was caused, and when all was well again."""
    saved: float = 0
    """When slurmctld had last saved the queue before that."""
    caused: float = 0
    """When it was there: causing it takes a moment."""
    at_once: list[str] | None = None
    """The files that a slurmctld wrote to when another one had begun to; None where nobody watched."""
    load: Load = field(init=False)
    _began: float = 0
    _quiet_since: float | None = None
    _held_since: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = f"{self.key}-{self.number}-{int(time.time())}"
        self.load = Load(self.cluster, self.fault.users_on, name)

    @property
    def fault(self) -> Fault:
        """What happens."""
        return FAULTS[self.key]

    def disturb(self) -> None:
        """Causes the fault under load, until all is well again."""
        load = self.load
        self._began = time.time()
        for number in range(RUNNING):
            load.submit(number, f"until test -e {load.stop}; do sleep 2; done")
        wait_until("jobs run", lambda: self._begun(load) >= RUNNING, _UNTIL_WELL)
        if self.fault.hurts_nodes:  # the watch would keep the file system from being unmounted
            self.span = self._under_load(load)
            return
        with watched(state_on_this_machine(self.cluster.name), self._host_of, self.writes):
            self.span = self._under_load(load)
        self.at_once = returned(self.writes)

    def _under_load(self, load: Load) -> tuple[float, float]:
        """When the fault began, and when everything was well again."""
        place = Place(self.cluster, self.chance)
        with load.going(RUNNING):
            time.sleep(self.chance.uniform(*_BEFORE))
            began = time.time()
            self.say(f"  caused: {self.fault.what}")
            self.saved = (self._state() / "job_state").stat().st_mtime
            self.fault.cause(place)
            self.caused = time.time()
            try:
                self._hold(load)
            finally:
                self.fault.end(place)
            self.say(f"  ended after {time.time() - began:.0f} s")
            self._get_well(load, time.time())
            over = time.time()
        self.say(f"  well again {over - began:.0f} s after it was caused")
        self.cluster.on("ctl1", "touch", load.stop)
        return began, over

    def _hold(self, load: Load) -> None:
        """Until the fault is to end."""
        if self.fault.lasts:
            time.sleep(self.chance.uniform(*self.fault.lasts))
        elif self.fault.is_until_led:
            self._wait("the other one leads", lambda: self._leads(1), _UNTIL_TAKEN)
            time.sleep(self.chance.uniform(5, 15))
        else:
            caused = time.time()
            self._wait("jobs are taken", lambda: _succeeds(load.submissions, caused), _UNTIL_TAKEN)
            time.sleep(self.chance.uniform(0, 5))

    def _get_well(self, load: Load, since: float) -> None:
        """Waits until all is as it was, and does something itself only where that never comes."""

        def is_well() -> bool:
            self._release()
            return (
                _succeeds(load.submissions, since)
                and _succeeds(load.questions, since)
                and self._stands()
                and self._leads()
                and has_whole_database(self.cluster)
            )

        if self._wait("all is well", is_well, _UNTIL_WELL):
            return
        self.by_hand.append("deploy cluster")
        self.cluster.deploy("--yes")
        wait_until("all is well after deploy cluster", is_well, _UNTIL_WELL)

    def _wait(self, what: str, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.say(f"  after {seconds:.0f} s still not: {what}")
                return False
            time.sleep(1)
        return True

    def _stands(self) -> bool:
        """Whether both controllers answer, and all nodes take jobs."""
        answer = self._asked("scontrol", "ping")
        shown = self._asked("sinfo", "--noheader", "--partition=main", "--Node", "--format=%t").split()
        good = [state for state in shown if state in _WELL]
        return answer.count(" is UP") == len(CONTROLLERS) and len(shown) == len(good) == len(NODES)

    def _leads(self, place: int = 0) -> bool:
        """Whether the first controller leads, or another one, by a heartbeat that is not old."""
        try:
            when, who = _HEARTBEAT.unpack((self._state() / "heartbeat").read_bytes()[: _HEARTBEAT.size])
        except (OSError, struct.error):
            return False
        return bool(who == place and time.time() - when < _OLD)

    def _state(self) -> Path:
        """The directory of the state, as this machine sees it."""
        return state_on_this_machine(self.cluster.name) / Path(STATE).relative_to(SHARED_STATE)

    def _asked(self, *words: str) -> str:
        return self.cluster.on(self.fault.users_on, "timeout", "15", *words, expect=None)

    def _begun(self, load: Load) -> int:
        return len(self._lines(load, "begun"))

    def _lines(self, load: Load, file: str) -> list[list[str]]:
        """What jobs of the load wrote: name, when it began, and where it has ended, when that was."""
        lines = self.cluster.on("ctl1", "cat", f"{PLACE}/{file}", expect=None).splitlines()
        return [line.split() for line in lines if line.startswith(load.name)]

    def count(self, seconds: float = UNTIL_TOLD) -> dict[str, Any]:
        """What became of every job, when no more comes, or after so many seconds."""
        load, span = self.load, self.span
        if not self.is_told():
            self.say(f"  {self.key}: waiting for the last jobs")
            self._wait("all jobs and their rows are there", self.is_told, seconds)
        rows = self._rows(load)
        came = self._fates(load, rows)
        taken = load.taken()
        return {
            "submission": round(longest_without(load.submissions, *span), 1),
            "accounting": round(longest_without(load.questions, *span), 1),
            "well": round(span[1] - span[0], 1),
            "taken": len(taken),
            "saved": round(self.saved - span[0], 1),
            "unsaved": unsaved(taken, self.saved, self.caused),
            "lost": {name: round(taken[name] - span[0], 1) for name in came.lost},
            "again": came.again,
            "twice": came.twice,
            "missing": came.missing,
            "usage": self._usage(load, rows),
            "at_once": self.at_once,
            "led": [
                [host, round(first - span[0], 1), round(last - span[0], 1)]
                for host, first, last in terms(self.writes)
            ],
            "by_hand": self.by_hand,
        }

    def is_told(self) -> bool:
        """Whether nothing waits or runs any more, slurmctld owes slurmdbd nothing, and no row is to come."""
        self._release()
        queue = self._asked("squeue", "--noheader", "--format", "%j")
        owed = self._asked("sdiag")
        if self.load.name in queue or "DBD Agent queue size: 0" not in owed:
            self._quiet_since = None
            return False
        self._quiet_since = self._quiet_since or time.monotonic()
        return time.monotonic() - self._quiet_since > _UNTIL_COMMITTED or not self._missing()

    def _missing(self) -> Sequence[str]:
        return self._fates(self.load, self._rows(self.load)).missing

    def _release(self) -> None:
        """What neither Slurm nor the nodes' health check gives back: drained nodes, jobs that are held."""
        held = [*self._held()]
        now = time.monotonic()
        self._held_since = {one: self._held_since.get(one, now) for one in held}
        for one in held:
            what, name, why = one
            if now - self._held_since[one] < 3 * HEALTH_CHECK_SECONDS:
                continue
            if what == SLURM_HELD[0]:
                self._on_leader("scontrol", "update", f"nodename={name}", "state=resume")
            else:
                self._on_leader("scontrol", "release", name)
            self._note(f"{what} ({why})")

    def _held(self) -> Iterator[tuple[str, str, str]]:
        """What it is, its name, and Slurm's reason."""
        for line in self._asked("sinfo", "--noheader", "--list-reasons", "--format=%n|%E|%t").splitlines():
            node, why, state = line.split("|")
            if state.startswith(("drain", "drng")):
                yield SLURM_HELD[0], node, why
        for line in self._asked("squeue", "--noheader", "--states=PENDING", "--format=%A|%r").splitlines():
            job, _, why = line.partition("|")
            if "held" in why:
                yield SLURM_HELD[1], job, why

    def _on_leader(self, *words: str) -> None:
        self.cluster.on(CONTROLLERS[0], "timeout", "15", *words, expect=None)

    def _note(self, what: str) -> None:
        if what not in self.by_hand:
            self.by_hand.append(what)

    def _fates(self, load: Load, rows: Sequence[Row]) -> Fates:
        return fates(
            list(load.taken()),
            [line[0] for line in self._lines(load, "begun")],
            [line[0] for line in self._lines(load, "ended")],
            [(name, state) for name, state, _ in rows],
        )

    def _usage(self, load: Load, rows: Sequence[Row]) -> dict[str, Any]:
        ended = [(name, float(end) - float(begin)) for name, begin, end in self._lines(load, "ended")]
        asked = ("sshare", "--noheader", "--parsable2", f"--accounts={load.name}", "--format=RawUsage")
        said: list[str] = []

        def answers() -> bool:
            said[:] = self._asked(*asked).split()
            return bool(said)

        self._wait("sshare answers", answers, _UNTIL_WELL)
        return usage_of(ended, rows, int(said[0]))

    def _rows(self, load: Load) -> list[Row]:
        """Name, state and CPU seconds of each start of a job."""
        rows = (line.split("|") for line in self._accounted().splitlines())
        return [
            (row[0], row[1], int(row[2])) for row in rows if len(row) == 3 and row[0].startswith(load.name)
        ]

    def _accounted(self) -> str:
        """What sacct says of jobs since this round began; no answer is not that there are no rows."""
        minutes = int(time.time() - self._began) // 60 + 2
        asked = (
            *("sacct", "--allusers", "--allocations", "--duplicates", "--noheader", "--parsable2"),
            f"--accounts={self.load.name}",
            *(f"--starttime=now-{minutes}minutes", "--format=JobName%60,State,CPUTimeRAW"),
        )
        said: list[str] = []

        def answers() -> bool:
            # Rows of this round are there from its beginning.
            said[:] = [self.cluster.on(DATABASE, *asked, expect=None)]
            return self.load.name in said[0]

        self._wait("sacct answers", answers, _UNTIL_WELL)
        return said[0]

    def _host_of(self, process: int) -> str:
        """The machine of a process, by its control group."""
        try:
            group = Path(f"/proc/{process}/cgroup").read_text(encoding="ascii")
        except OSError:
            return ""
        return next((host for key, host in _containers(self.cluster.name).items() if key in group), "")


def _succeeds(asked: list[Asked], since: float) -> bool:
    """Whether something that was asked since then succeeded."""
    return any(one.came and one.began > since for one in [*asked])


@cache
def _containers(lab: str) -> dict[str, str]:
    """The machines of a lab, by the ids of their containers."""
    form = "{{.Id}}"
    return {
        run("podman", "inspect", "--format", form, container_name(lab, host)).stdout.strip(): host
        for host in HOSTS
    }

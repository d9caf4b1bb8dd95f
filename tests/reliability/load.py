"""What users do meanwhile: a job submitted each second, accounting asked each second, jobs that run on."""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from deploy.lab.state import container_name
from tests.cluster.lab_cluster import Cluster, wait_until
from tests.containers import inside
from tests.reliability.figures import Asked

PLACE = "/home/alice/reliability"
_ALICE = ("setpriv", "--reuid=alice", "--regid=alice", "--init-groups", "env", "HOME=/home/alice")
_PATIENCE = 15
_MOST_AT_ONCE = 10
_SHORT = "sleep 1"
_NOW = "$(date +%s.%N)"
_PROGRAM = (
    f'begun="$SLURM_JOB_NAME {_NOW}"; echo "$begun" >>{{place}}/begun; {{work}};'
    f' echo "$begun {_NOW}" >>{{place}}/ended'
)


@dataclass
class Load:
    """``host`` is where users type; names of jobs begin with ``name``, which is their account's, too."""

    cluster: Cluster
    host: str
    name: str
    submissions: list[Asked] = field(default_factory=list)
    questions: list[Asked] = field(default_factory=list)

    @property
    def stop(self) -> str:
        """The file that ends the jobs that run on."""
        return f"{PLACE}/stop-{self.name}"

    def submit(self, number: int, work: str = _SHORT) -> None:
        """One job, whose name says which one it is; what came is kept."""
        program = _PROGRAM.format(place=PLACE, work=work)
        options = ("--parsable", "--mem=5", "--time=30", "--output=/dev/null", f"--chdir={PLACE}")
        names = (f"--account={self.name}", f"--job-name={self.job(number)}")
        words = ("sbatch", *options, *names, f"--wrap={program}")
        self.submissions.append(self._ask(number, *words))

    def ask(self, number: int) -> None:
        """A question to slurmdbd."""
        words = ("sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=cluster")
        self.questions.append(self._ask(number, *words))

    def job(self, number: int) -> str:
        """The name of a job."""
        return f"{self.name}-{number}"

    def taken(self) -> dict[str, float]:
        """The names of the jobs that Slurm took, with when it had said so."""
        return {self.job(one.number): one.ended for one in self.submissions if one.came}

    def _ask(self, number: int, *words: str) -> Asked:
        command = (*_ALICE, "timeout", str(_PATIENCE), *words)
        call = inside(container_name(self.cluster.name, self.host), *command)
        began = time.time()
        done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        said = done.stdout.strip() if done.returncode == 0 else ""
        return Asked(number, began, time.time(), said)

    @contextmanager
    def going(self, first: int) -> Iterator[None]:
        """Submits and asks each second; at the end those that are under way are waited for."""
        ended = threading.Event()
        streams = [
            threading.Thread(target=_each_second, args=(one, first, ended)) for one in (self.submit, self.ask)
        ]
        for stream in streams:
            stream.start()
        try:
            yield
        finally:
            ended.set()
            for stream in streams:
                stream.join()


def prepare(cluster: Cluster, loads: Sequence[Load]) -> None:
    """The place where jobs write, and the accounts, before anything is broken that has to know of them."""
    cluster.on("ctl1", "install", "-d", "-m", "0755", "-o", "alice", "-g", "alice", PLACE)
    names = [load.name for load in loads]
    add = ("sacctmgr", "--immediate", "--quiet", "add")
    cluster.on("ctl1", *add, "account", ",".join(names))
    cluster.on("ctl1", *add, "user", "alice", f"account={','.join(names)}")
    shown = ("scontrol", "show", "assoc_mgr", "flags=assoc", "users=alice")

    def are_known() -> bool:
        known = cluster.on("ctl1", *shown, expect=None).split()
        return all(f"Account={name}" in known for name in names)

    wait_until("slurmctld knows the accounts", are_known, 60)


def _each_second(one: Callable[[int], None], number: int, ended: threading.Event) -> None:
    """Begins one each second, also while others wait for their answer."""
    waiting: list[threading.Thread] = []
    while not ended.is_set():
        began = time.monotonic()
        waiting = [thread for thread in waiting if thread.is_alive()]
        if len(waiting) < _MOST_AT_ONCE:
            waiting.append(threading.Thread(target=one, args=(number,)))
            waiting[-1].start()
            number += 1
        ended.wait(max(0.0, 1 - (time.monotonic() - began)))
    for thread in waiting:
        thread.join()

"""Which remedies a fault of a node has, in the order in which they are tried."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from deploy.engine.fit import Fault

CONVERGE, REBOOT, LOOK = "converge", "reboot", "look"
"""What deploy does itself; the other remedies are verbs of ``run/remedies.py``.

``look`` is for what jobs left that Slurm gave up on: it may be gone since.
"""

STUCK = "stuck"
"""The kind of fault of a node that Slurm drained itself."""

_LADDERS = {
    "mount": ("mount", CONVERGE, REBOOT),
    "silent": ("remount", REBOOT),
    "read-only": ("remount", REBOOT),
    "room": ("clean",),
    "path": (CONVERGE, REBOOT),
    "service": ("restart", CONVERGE, REBOOT),
    "clock": ("set_clock", CONVERGE),
    "hardware": (REBOOT,),
    "gpu": ("reset_gpu", REBOOT),
    "infiniband": (REBOOT,),
    "program": ("own", REBOOT),
    "health check": (CONVERGE,),
    STUCK: (LOOK, REBOOT),
}
"""By the kind of a fault, as the node's health check has it; for one that is not here there is none."""
_HEAVY = frozenset({REBOOT, "reset_gpu"})
_BESIDE_JOBS = frozenset({"restart", "mount", "clean", "own"})
"""Not ``remount``: jobs that wait for a server that is away go on when it is back, and lose what they write
where its file system is taken from them."""


@dataclass(frozen=True)
class Remedy:
    """What can be done about a fault; ``subject`` is empty where it is for the whole node."""

    name: str
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.name.replace('_', ' ')} {self.subject}".strip()

    @property
    def spares_jobs(self) -> bool:
        """Whether jobs may run meanwhile."""
        return self.name in _BESIDE_JOBS

    @property
    def is_heavy(self) -> bool:
        """Whether the machine is another one afterwards, so that its health check alone proves too little."""
        return self.name in _HEAVY


def remedies(faults: Iterable[Fault]) -> Iterator[Remedy]:
    """What can be tried about faults: first what spares jobs, a reboot last."""
    found = dict.fromkeys(
        Remedy(name, "" if name in {CONVERGE, REBOOT, LOOK} else fault.subject)
        for fault in faults
        for name in _LADDERS.get(fault.kind, ())
    )
    yield from sorted(found, key=lambda it: (it.name == REBOOT, it.name == CONVERGE, not it.spares_jobs))


def next_remedy(faults: Iterable[Fault], tried: Collection[Remedy]) -> Remedy | None:
    """The next remedy that was not tried yet."""
    return next((remedy for remedy in remedies(faults) if remedy not in tried), None)

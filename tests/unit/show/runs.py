"""Runs made of a few events, as a journal would hold them."""

from deploy.run.events import (
    Ending,
    Event,
    HostResult,
    HostStats,
    PhaseEnded,
    Planned,
    PlannedPhase,
    PlayStarted,
    RunEnded,
    Stats,
    Status,
    TaskStarted,
)

START = 1000.0


def result(
    host: str,
    status: Status = Status.OK,
    *,
    at: float = 2.0,
    seconds: float = 1.0,
    play: str = "Base",
    role: str = "munge",
    task: str = "Install",
    path: str = "x.yml:3",
    message: str = "",
    phase: str = "",
) -> HostResult:
    """A result ``at`` seconds after the start."""
    return HostResult(START + at, host, play, role, task, path, status, seconds, message, phase=phase)


def planned(**hosts: str) -> Planned:
    """What is to be done: by phase its hosts, separated by spaces; a title is the phase in capitals."""
    phases = (PlannedPhase(phase, phase.upper(), tuple(names.split())) for phase, names in hosts.items())
    return Planned(START, tuple(phases))


def phase_ended(phase: str, *hosts: str) -> PhaseEnded:
    """The end of a phase's play, with the hosts on which its last task ended."""
    return PhaseEnded(START + 3.0, phase, hosts)


def play(name: str, at: float = 1.0) -> PlayStarted:
    """A play that begins ``at`` seconds after the start."""
    return PlayStarted(START + at, name)


def task(name: str, at: float = 1.0) -> TaskStarted:
    """A task that begins ``at`` seconds after the start."""
    return TaskStarted(START + at, "Base", "munge", name, "x.yml:3")


def stats(**hosts: HostStats) -> Stats:
    """The recap."""
    return Stats(START + 9.0, hosts)


def ended(rc: int = 0, ending: Ending = Ending.FINISHED) -> RunEnded:
    """The end, ten seconds after the start."""
    return RunEnded(START + 10.0, rc, ending)


WITH_FAILURE: list[Event] = [
    play("Base"),
    task("Install"),
    result("node1", Status.CHANGED),
    result("node2", Status.FAILED, message="first\nsecond", at=3.0, seconds=2.0),
    play("Compute", at=4.0),
    result("node1", Status.SKIPPED, at=5.0, role="slurmd", task="Start", seconds=0.1),
    stats(node1=HostStats(ok=1, changed=1, skipped=1), node2=HostStats(failed=1)),
    ended(rc=2),
]

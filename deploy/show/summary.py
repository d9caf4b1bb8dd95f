"""What a run came to: its events, added up."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from deploy.errors import ExitCode
from deploy.run.events import Event, HostResult, Notice, Stats, Status

_SLOWEST = 10


class Outcome(StrEnum):
    """One word for a whole run."""

    CONVERGED = "converged"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    INTERRUPTED = "interrupted"


EXIT_CODES: Mapping[Outcome, ExitCode] = {
    Outcome.CONVERGED: ExitCode.OK,
    Outcome.FAILED: ExitCode.FAILED,
    Outcome.UNREACHABLE: ExitCode.UNREACHABLE,
    Outcome.INTERRUPTED: ExitCode.INTERRUPTED,
}


@dataclass
class HostSummary:
    """Counts of task results; ``unknown`` when the run stopped before the host's last word."""

    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0
    unknown: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Summary:
    """The whole run: ``seconds`` on the clock, ``hosts`` in the order they were planned."""

    outcome: Outcome
    seconds: float
    hosts: Mapping[str, HostSummary]
    failures: tuple[HostResult, ...]
    slowest: tuple[tuple[str, float], ...]
    results: tuple[HostResult, ...] = field(repr=False, default=())
    notices: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """What the command exits with."""
        return EXIT_CODES[self.outcome]

    @property
    def changed(self) -> int:
        """Changes on all hosts together."""
        return sum(host.changed for host in self.hosts.values())

    def to_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        return {
            "outcome": self.outcome.value,
            "seconds": round(self.seconds, 2),
            "hosts": {
                name: {
                    "ok": host.ok,
                    "changed": host.changed,
                    "failed": host.failed,
                    "unreachable": host.unreachable,
                    "skipped": host.skipped,
                    "unknown": host.unknown,
                    "seconds": round(host.seconds, 2),
                }
                for name, host in self.hosts.items()
            },
            "failures": [
                {
                    "host": result.host,
                    "role": result.role,
                    "task": result.task,
                    "path": result.path,
                    "status": result.status.value,
                    "message": result.message,
                }
                for result in self.failures
            ],
            "slowest_tasks": [{"task": task, "seconds": round(seconds, 2)} for task, seconds in self.slowest],
            "notices": list(self.notices),
        }


def summarize(
    events: Iterable[Event], hosts: Iterable[str], *, interrupted: bool, seconds: float, code: int = 0
) -> Summary:
    """Adds up a run over ``hosts``; ``code`` is Ansible's exit code where it is known.

    Counts as Ansible does: a changed task is also ok, an ignored failure is ok.
    """
    counts = {name: HostSummary() for name in hosts}
    results: list[HostResult] = []
    notices: list[str] = []
    ended: Stats | None = None
    for event in events:
        if isinstance(event, HostResult):
            results.append(event)
            _count(counts.setdefault(event.host, HostSummary()), event)
        elif isinstance(event, Notice):
            notices.append(event.text)
        elif isinstance(event, Stats):
            ended = event
    stopped = interrupted or (ended is None and code != 0 and bool(results))
    for host in counts.values():
        host.unknown = stopped and not (host.failed or host.unreachable)
    return Summary(
        outcome=_outcome(counts.values(), stopped=stopped, code=code),
        seconds=seconds,
        hosts=counts,
        failures=tuple(r for r in results if r.status in {Status.FAILED, Status.UNREACHABLE}),
        slowest=_slowest(results),
        results=tuple(results),
        notices=tuple(dict.fromkeys(notices)),
    )


def _count(host: HostSummary, result: HostResult) -> None:
    host.seconds += result.seconds
    match result.status:
        case Status.OK | Status.IGNORED:
            host.ok += 1
        case Status.CHANGED:
            host.ok += 1
            host.changed += 1
        case Status.FAILED:
            host.failed += 1
        case Status.UNREACHABLE:
            host.unreachable += 1
        case Status.SKIPPED:
            host.skipped += 1


def _outcome(hosts: Iterable[HostSummary], *, stopped: bool, code: int) -> Outcome:
    hosts = list(hosts)
    if stopped:
        return Outcome.INTERRUPTED
    if any(host.failed for host in hosts):
        return Outcome.FAILED
    if any(host.unreachable for host in hosts):
        return Outcome.UNREACHABLE
    return Outcome.FAILED if code else Outcome.CONVERGED


def _slowest(results: Iterable[HostResult]) -> tuple[tuple[str, float], ...]:
    """Tasks by the longest time that any host took for them."""
    longest: defaultdict[str, float] = defaultdict(float)
    for result in results:
        name = f"{result.role} : {result.task}" if result.role else result.task
        longest[name] = max(longest[name], result.seconds)
    return tuple(sorted(longest.items(), key=lambda item: -item[1])[:_SLOWEST])

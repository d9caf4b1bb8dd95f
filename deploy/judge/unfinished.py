"""What of a plan did not come to its end, what stands in its way, and what could still be done."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from deploy.run.events import Event, HostResult, PhaseEnded, Planned, PlannedPhase, Status
from deploy.site.node_lists import fold

CHECK = "check"
"""The id of the play that compares machines with the site: where it fails, nothing else is done."""


@dataclass(frozen=True)
class NotRun:
    """A phase that was planned and did not come to its end on some hosts, and because of what."""

    phase: str
    title: str
    hosts: tuple[str, ...]
    why: str


class Phases:
    """What was planned, where it came to its end and where it failed, while events go by."""

    def __init__(self) -> None:
        self._planned: tuple[PlannedPhase, ...] = ()
        self._hosts: dict[str, frozenset[str]] = {}
        self._ended: defaultdict[str, set[str]] = defaultdict(set)
        self._failures: list[HostResult] = []

    def take(self, event: Event) -> None:
        """Note an event; a plan replaces the one before."""
        match event:
            case Planned():
                self._planned = event.phases
                self._hosts = {part.phase: frozenset(part.hosts) for part in event.phases}
                self._ended.clear()
            case PhaseEnded():
                self._ended[event.phase].update(event.hosts)
            case HostResult() if event.is_trouble:
                self._failures.append(event)

    @property
    def is_refused(self) -> bool:
        """Whether a machine is not fit, so that nothing is done on any."""
        return any(it.phase == CHECK and it.status is Status.FAILED for it in self._failures)

    def open(self) -> dict[str, tuple[str, ...]]:
        """By phase the hosts on which it did not come to its end although no failure stands in its way."""
        causes = self._causes()
        found = {
            part.phase: tuple(name for name in self._missing(part) if (part.phase, name) not in causes)
            for part in self._planned
        }
        return {phase: hosts for phase, hosts in found.items() if hosts}

    def not_run(self, *, stopped: str = "") -> tuple[NotRun, ...]:
        """The phases that did not come to their end, but for those that failed by themselves on the host.

        ``stopped`` says what ended the run, where that was no failure on a host.
        """
        causes, last = self._causes(), stopped or self._last()
        own = {(failure.phase, failure.host) for failure in self._failures}
        found = []
        for part in self._planned:
            hosts: defaultdict[str, list[str]] = defaultdict(list)
            for name in self._missing(part):
                if (part.phase, name) not in own:
                    hosts[causes.get((part.phase, name), last)].append(name)
            found += [NotRun(part.phase, part.title, tuple(names), why) for why, names in hosts.items()]
        return tuple(found)

    def _missing(self, part: PlannedPhase) -> Iterator[str]:
        return (name for name in part.hosts if name not in self._ended[part.phase])

    def _causes(self) -> dict[tuple[str, str], str]:
        """By phase and host what keeps the phase from its end there: its own failure, or one before it."""
        own = {(failure.phase, failure.host): _told([failure]) for failure in reversed(self._failures)}
        lost = {it.host: _told([it]) for it in reversed(self._failures) if it.status is Status.UNREACHABLE}
        causes: dict[tuple[str, str], str] = {}
        anywhere: dict[str, str] = {}
        for part in self._planned:
            for name in self._missing(part):
                needed = [
                    causes.get((phase, name)) if name in self._hosts.get(phase, ()) else anywhere.get(phase)
                    for phase in part.after
                ]
                needed += map(anywhere.get, part.after_everywhere)
                cause = own.get((part.phase, name)) or lost.get(name) or next(filter(None, needed), None)
                if cause:
                    causes[part.phase, name] = cause
                    anywhere.setdefault(part.phase, cause)
        return causes

    def _last(self) -> str:
        """The phase that ended the run: Ansible goes on with the next one only where some host is left."""
        if not self._failures:
            return "the run ended before"
        return _told([it for it in self._failures if it.phase == self._failures[-1].phase])


def _told(failures: Iterable[HostResult]) -> str:
    told = list(failures)
    failed = fold({failure.host for failure in told if failure.status is Status.FAILED})
    lost = fold({failure.host for failure in told if failure.status is not Status.FAILED})
    words = [f"failed on {failed}"] * bool(failed) + [f"could not reach {lost}"] * bool(lost)
    return f"{told[0].play} {' and '.join(words)}"

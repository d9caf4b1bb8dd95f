"""What a run was to do and did not, and because of what."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deploy.run.events import Event, HostResult, PhaseEnded, Planned, PlannedPhase, Status
from deploy.site.node_lists import fold


@dataclass(frozen=True)
class NotRun:
    """A phase that was planned and did not come to its end on some hosts, and because of what."""

    phase: str
    title: str
    hosts: tuple[str, ...]
    why: str


class Phases:
    """What was planned and where it came to its end, while events go by."""

    def __init__(self) -> None:
        self._planned: tuple[PlannedPhase, ...] = ()
        self._ended: defaultdict[str, set[str]] = defaultdict(set)

    def take(self, event: Event) -> None:
        """Note an event; a plan replaces the one before."""
        match event:
            case Planned():
                self._planned = event.phases
                self._ended.clear()
            case PhaseEnded():
                self._ended[event.phase].update(event.hosts)

    def not_run(self, failures: Sequence[HostResult], *, stopped: str = "") -> tuple[NotRun, ...]:
        """The phases that did not come to their end, but for those that failed by themselves on the host.

        ``failures`` are the results in trouble in their order; ``stopped`` says what ended the run, where
        that was none of them.
        """
        first = {failure.host: failure for failure in reversed(failures)}
        last = stopped or _last(failures)
        found = []
        for part in self._planned:
            hosts: defaultdict[str, list[str]] = defaultdict(list)
            for name in part.hosts:
                own = first.get(name)
                if name in self._ended[part.phase] or (own and own.phase == part.phase):
                    continue
                hosts[_told(own.play, [own]) if own else last].append(name)
            found += [NotRun(part.phase, part.title, tuple(names), why) for why, names in hosts.items()]
        return tuple(found)


def _last(failures: Sequence[HostResult]) -> str:
    """The play that ended the run: Ansible goes on with the next one only where some host is left."""
    if not failures:
        return "the run ended before"
    of_play = [failure for failure in failures if failure.play == failures[-1].play]
    return _told(failures[-1].play, of_play)


def _told(play: str, failures: Iterable[HostResult]) -> str:
    failed = fold({failure.host for failure in failures if failure.status is Status.FAILED})
    lost = fold({failure.host for failure in failures if failure.status is not Status.FAILED})
    words = [f"failed on {failed}"] * bool(failed) + [f"could not reach {lost}"] * bool(lost)
    return f"{play} {' and '.join(words)}"

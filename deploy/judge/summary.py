"""What a run came to: its events, added up. The same events always come to the same."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from deploy.errors import ExitCode
from deploy.judge.unfinished import NotRun, Phases
from deploy.run.events import (
    Ending,
    Event,
    HostResult,
    HostStats,
    HostVerified,
    LeftOver,
    Level,
    Notice,
    PlayStarted,
    RunEnded,
    Stats,
    Status,
)

_SLOWEST = 10
_LAST_OUTPUT_LINES = 20
_FIRST_SIGNAL_CODE = 128


class Outcome(StrEnum):
    """One word for a whole run."""

    CONVERGED = "converged"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    INTERRUPTED = "interrupted"


_EXIT_CODES: Mapping[Outcome, ExitCode] = {
    Outcome.CONVERGED: ExitCode.OK,
    Outcome.FAILED: ExitCode.FAILED,
    Outcome.UNREACHABLE: ExitCode.UNREACHABLE,
    Outcome.INTERRUPTED: ExitCode.INTERRUPTED,
}


@dataclass(frozen=True)
class HostSummary:
    """Counts of task results; ``unknown`` when the run stopped before the host's last word.

    Counted as Ansible does: what changed and what was ignored is also ok. ``verified`` are the phases that
    did not have to run, because the host still is as they left it; ``not_run``, those that were planned and
    did not come to their end; ``pending``, what tasks that succeeded left to a later run.
    """

    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0
    rescued: int = 0
    ignored: int = 0
    verified: int = 0
    not_run: int = 0
    pending: tuple[str, ...] = ()
    unknown: bool = False
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        """Whether it failed or could not be reached."""
        return bool(self.failed or self.unreachable)

    @property
    def is_whole(self) -> bool:
        """Whether it took part and every phase came to its end, some of it perhaps left to a later run."""
        return bool(self.ok or self.verified) and not (self.is_bad or self.unknown or self.not_run)

    @property
    def is_good(self) -> bool:
        """Whether it took part and every phase came to its end, as far as is known, with nothing left."""
        return self.is_whole and not self.pending


@dataclass(frozen=True)
class SlowTask:
    """A task and the longest time that any host took for it."""

    task: str
    seconds: float
    host: str


@dataclass(frozen=True)
class Phase:
    """A play and when it began, in seconds from the start of the run."""

    name: str
    begin: float


@dataclass(frozen=True)
class Summary:
    """The whole run: ``seconds`` on the clock, ``hosts`` in the order they were planned.

    ``trouble`` is what Ansible said where it stopped outside of any task; ``warnings`` each once; ``not_run``
    is empty where no plan is known; ``left_over`` is what hosts have that the inventory no longer says.
    """

    outcome: Outcome
    exit_code: ExitCode
    started: float
    seconds: float
    hosts: Mapping[str, HostSummary]
    failures: tuple[HostResult, ...]
    slowest: tuple[SlowTask, ...]
    phases: tuple[Phase, ...] = ()
    not_run: tuple[NotRun, ...] = ()
    trouble: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    left_over: tuple[LeftOver, ...] = ()
    results: tuple[HostResult, ...] = field(repr=False, default=())

    @property
    def changed(self) -> int:
        """Changes on all hosts together."""
        return sum(host.changed for host in self.hosts.values())

    @property
    def is_nothing_to_do(self) -> bool:
        """Whether a run in check mode came to its end and would change nothing; hosts may be unreachable."""
        is_whole = all(host.unreachable or not host.not_run for host in self.hosts.values())
        return self.changed == 0 and is_whole and self.outcome in {Outcome.CONVERGED, Outcome.UNREACHABLE}


def summarize(
    events: Iterable[Event],
    hosts: Iterable[str],
    *,
    started: float | None = None,
    is_complete: bool = True,
) -> Summary:
    """Add up a run over ``hosts``, which may hold more than one playbook.

    ``started`` is when the run began (else when its first event happened). A run that is not complete, such
    as one whose journal ends without a last word, was interrupted.
    """
    tally = _Tally(hosts)
    for event in events:
        tally.take(event)
    return tally.summary(started, is_complete=is_complete)


def as_preview(events: Iterable[Event]) -> Iterator[Event]:
    """What happened in check mode, in which no host is changed: what would change counts as done well."""
    for event in events:
        match event:
            case HostResult(status=Status.CHANGED):
                yield replace(event, status=Status.OK)
            case Stats():
                yield replace(event, hosts={name: replace(of, changed=0) for name, of in event.hosts.items()})
            case _:
                yield event


class _Tally:
    """Sums while events go by."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._counts = {host: _Counts() for host in hosts}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._verified: dict[str, int] = {}
        # Of the playbook that is running: Ansible's own recap, when it comes, replaces these.
        self._current: defaultdict[str, _Counts] = defaultdict(_Counts)
        self._results: list[HostResult] = []
        self._plays: list[tuple[str, float]] = []
        self._phases = Phases()
        self._pending: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._warnings: dict[str, None] = {}
        self._left_over: list[LeftOver] = []
        self._spoken: list[str] = []
        self._trouble: list[str] = []
        self._first = self._last = 0.0
        self._recapped = self._broken = self._cancelled = self._failed_rc = False

    def take(self, event: Event) -> None:
        """Count an event."""
        if event.at:
            self._first = self._first or event.at
            self._last = max(self._last, event.at)
        self._phases.take(event)
        match event:
            case HostResult():
                self._results.append(event)
                self._seconds[event.host] += event.seconds
                self._pending[event.host] |= dict.fromkeys(event.pending)
                self._current[event.host].count(event)
            case HostVerified() | LeftOver():
                self._hear_of_host(event)
            case PlayStarted():
                self._plays.append((event.play, event.at))
            case Notice(level=Level.WARNING):
                self._warnings[event.text] = None
            case Notice(level=Level.ERROR | Level.OUTPUT):
                self._spoken.append(event.text)
            case Stats():
                self._recapped = True
                for host, stats in event.hosts.items():
                    self._current[host] = _Counts.of(stats)
            case RunEnded():
                self._end_playbook(event)

    def _hear_of_host(self, event: HostVerified | LeftOver) -> None:
        if isinstance(event, LeftOver):
            self._left_over.append(event)
        else:
            self._verified[event.host] = len(event.phases)

    def _end_playbook(self, event: RunEnded) -> None:
        self._add_current()
        is_cancelled = event.ending is Ending.CANCELLED
        self._cancelled |= is_cancelled
        self._failed_rc |= event.rc != 0
        if event.rc and not self._recapped and not is_cancelled:
            self._broken = True
            said = [line for line in self._spoken if line.strip()][-_LAST_OUTPUT_LINES:]
            if event.rc > _FIRST_SIGNAL_CODE:
                said.append(f"ansible-playbook was killed by signal {event.rc - _FIRST_SIGNAL_CODE}")
            self._trouble += said or [f"ansible-playbook ended with return code {event.rc} and said nothing"]
        self._recapped = False
        self._spoken.clear()

    def _add_current(self) -> None:
        for host, counts in self._current.items():
            self._counts.setdefault(host, _Counts()).add(counts)
        self._current.clear()

    def summary(self, started: float | None, *, is_complete: bool) -> Summary:
        """The sums."""
        self._add_current()
        begin = started or self._first
        is_interrupted = self._cancelled or not is_complete
        is_unfinished = is_interrupted or self._broken
        failures = tuple(result for result in self._results if result.is_trouble)
        stopped = "the run was interrupted" if is_interrupted else "Ansible broke" if self._broken else ""
        missing = self._phases.not_run(stopped=stopped)
        unrun = Counter(name for part in missing for name in part.hosts)
        hosts = {
            name: counts.summary(
                self._seconds[name],
                self._verified.get(name, 0),
                not_run=unrun[name],
                pending=tuple(self._pending[name]),
                is_unfinished=is_unfinished,
            )
            for name, counts in self._counts.items()
        }
        outcome = self._outcome(hosts, is_interrupted=is_interrupted)
        exit_code = _EXIT_CODES[outcome]
        if outcome is Outcome.FAILED and self._broken and not self._results:
            exit_code = ExitCode.BAD_INPUT
        return Summary(
            outcome=outcome,
            exit_code=exit_code,
            started=begin,
            seconds=max(0.0, self._last - begin),
            hosts=hosts,
            failures=failures,
            slowest=_slowest(self._results),
            phases=tuple(Phase(name, max(0.0, at - begin)) for name, at in self._plays),
            not_run=missing,
            trouble=tuple(self._trouble),
            warnings=tuple(self._warnings),
            left_over=tuple(self._left_over),
            results=tuple(self._results),
        )

    def _outcome(self, hosts: Mapping[str, HostSummary], *, is_interrupted: bool) -> Outcome:
        if is_interrupted:
            return Outcome.INTERRUPTED
        if self._broken or any(host.failed for host in hosts.values()):
            return Outcome.FAILED
        if any(host.unreachable for host in hosts.values()):
            return Outcome.UNREACHABLE
        return Outcome.FAILED if self._failed_rc else Outcome.CONVERGED


@dataclass
class _Counts:
    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0
    rescued: int = 0
    ignored: int = 0

    @classmethod
    def of(cls, stats: HostStats) -> "_Counts":
        return cls(**{name.name: getattr(stats, name.name) for name in fields(cls)})

    def add(self, other: "_Counts") -> None:
        for name in fields(self):
            setattr(self, name.name, getattr(self, name.name) + getattr(other, name.name))

    def count(self, result: HostResult) -> None:
        if result.ignored:
            self.ignored += 1
            self.ok += result.status is Status.FAILED
        elif result.rescued:
            self.rescued += 1
        elif result.status is Status.CHANGED:
            self.ok += 1
            self.changed += 1
        else:
            setattr(self, result.status.value, getattr(self, result.status.value) + 1)

    def summary(
        self, seconds: float, verified: int, *, not_run: int, pending: tuple[str, ...], is_unfinished: bool
    ) -> HostSummary:
        is_bad = bool(self.failed or self.unreachable)
        counts = {name.name: getattr(self, name.name) for name in fields(self)}
        is_unknown = is_unfinished and not is_bad
        return HostSummary(
            **counts,
            verified=verified,
            not_run=not_run,
            pending=pending,
            unknown=is_unknown,
            seconds=seconds,
        )


def _slowest(results: Iterable[HostResult]) -> tuple[SlowTask, ...]:
    longest: dict[str, SlowTask] = {}
    for result in results:
        if result.title not in longest or result.seconds > longest[result.title].seconds:
            longest[result.title] = SlowTask(result.title, result.seconds, result.host)
    return tuple(sorted(longest.values(), key=lambda slow: -slow.seconds)[:_SLOWEST])

"""When each host did what, as bars on a scale of ``WIDTH`` for the whole run."""

from collections.abc import Iterator
from dataclasses import dataclass

from deploy.judge.summary import Summary
from deploy.run.events import HostResult

WIDTH = 1000.0
_SHORTEST_BAR = 0.8
_MOST_TICKS = 8
_LAST_TICK = 0.97
_TICK_STEPS = (0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200)


@dataclass(frozen=True)
class Bar:
    """A stretch of a host's time; ``title`` says what it did then."""

    x: float
    width: float
    verdict: str
    title: str


@dataclass(frozen=True)
class Lane:
    """A host and its bars, in order."""

    host: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Mark:
    """A place on the scale with a label."""

    x: float
    label: str


def lanes(summary: Summary) -> tuple[Lane, ...]:
    """One lane per host."""
    by_host: dict[str, list[HostResult]] = {name: [] for name in summary.hosts}
    for result in summary.results:
        by_host.setdefault(result.host, []).append(result)
    return tuple(Lane(host, tuple(_bars(summary, results))) for host, results in by_host.items())


def ticks(summary: Summary) -> tuple[Mark, ...]:
    """The marks of the time axis, at round times."""
    seconds = max(summary.seconds, 0.001)
    step = next((step for step in _TICK_STEPS if seconds / step <= _MOST_TICKS), 14400)
    # No mark at the very end, where its label would leave the page.
    count = int(seconds * _LAST_TICK // step)
    return tuple(Mark(_scaled(summary, number * step), _clock(number * step)) for number in range(count + 1))


def phases(summary: Summary) -> tuple[Bar, ...]:
    """The plays as bars that fill the whole scale; a play nobody took part in is as short as it was."""
    begins = [*(phase.begin for phase in summary.phases), summary.seconds]
    return tuple(
        Bar(
            _scaled(summary, begin),
            round(max(0.0, _scaled(summary, end) - _scaled(summary, begin)), 2),
            "phase",
            phase.name,
        )
        for phase, begin, end in zip(summary.phases, begins, begins[1:], strict=False)
    )


def _bars(summary: Summary, results: list[HostResult]) -> Iterator[Bar]:
    """A bar per result; what is too short to be seen is drawn with its neighbour when that ended alike."""
    pending: Bar | None = None
    count = 0
    for result in results:
        begin = result.at - result.seconds - summary.started
        bar = Bar(
            _scaled(summary, begin),
            max(_SHORTEST_BAR, round(result.seconds / max(summary.seconds, 0.001) * WIDTH, 2)),
            result.verdict,
            f"{result.title}: {result.verdict}, {result.seconds:.1f} s",
        )
        if pending and pending.verdict == bar.verdict and bar.x + bar.width <= pending.x + 2 * _SHORTEST_BAR:
            count += 1
            width = round(max(pending.width, bar.x + bar.width - pending.x), 2)
            pending = Bar(pending.x, width, bar.verdict, f"{count} short tasks: {bar.verdict}")
            continue
        if pending:
            yield pending
        pending, count = bar, 1
    if pending:
        yield pending


def _scaled(summary: Summary, seconds: float) -> float:
    return round(min(WIDTH, max(0.0, seconds / max(summary.seconds, 0.001) * WIDTH)), 2)


def _clock(seconds: float) -> str:
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:g} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

"""What a replay came to, as text and for programs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from deploy.judge.replayed import Change, Replayed, Request

_NAMED = 6
_GIB = 1024
_HOUR, _DAY = 60, 1440


def as_json(came: Replayed) -> dict[str, Any]:
    """Everything, with each change's jobs."""
    data = asdict(came)
    for name in ("refused", "accepted"):
        for row, change in zip(data[name], getattr(came, name), strict=True):
            row["jobs"] = change.jobs
            row["request"]["gres"] = dict(change.request.gres)
            row["request"]["licenses"] = dict(change.request.licenses)
    return data


def lines(came: Replayed) -> Iterator[str]:
    """By reason what jobs asked for and whose they were; the last line says it in one."""
    refused = [change for change in came.refused if not change.waits]
    waiting = [change for change in came.refused if change.waits]
    yield from _block("would be refused", refused)
    yield from _block("would be accepted, and wait for ever", waiting)
    yield from _block("would be accepted, and are refused or wait for ever now", came.accepted)
    if came.gone:
        yield (
            f"not tried: {_counted(sum(came.gone.values()))} of users whom the controller does not know: "
            + (_named(came.gone))
        )
    if came.unread:
        yield f"not tried: {_counted(came.unread)} of which accounting does not know what they asked for"
    if came.in_reservations:
        yield f"tried without their reservation: {_counted(came.in_reservations)}"
    if came.never:
        yield f"accepted neither now nor then: {_counted(came.never)}"
    yield f"replay: {_verdict(came, refused, waiting)}"


def _verdict(came: Replayed, refused: list[Change], waiting: list[Change]) -> str:
    period = f"of the last {came.days} days" if came.days > 1 else "of the last day"
    if not came.jobs:
        return f"there are no jobs {period} that could be tried"
    whole = f"{_counted(came.jobs)} {period} ({came.shapes} different request{'s' * (came.shapes != 1)})"
    if not came.exit_code:
        return f"nothing would change for {whole}"
    parts = (
        (refused, "would be refused"),
        (waiting, "would wait for ever"),
        (came.accepted, "would be accepted that are not now"),
    )
    said = ", ".join(f"{_sum(changes)} {what}" for changes, what in parts if changes)
    return f"of {whole} {said}"


def _block(title: str, changes: Iterable[Change]) -> Iterator[str]:
    by_reason: dict[str, list[Change]] = {}
    for change in changes:
        by_reason.setdefault(change.why, []).append(change)
    for why, found in sorted(by_reason.items(), key=lambda item: -_sum(item[1])):
        yield f"{title}: {_counted(_sum(found))}: {why}"
        rows = [
            (
                str(change.jobs),
                request_in_words(change.request),
                _named(change.users),
                _named(change.accounts),
            )
            for change in found
        ]
        head = ("jobs", "what they ask for", "users", "accounts")
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            cells = [
                row[0].rjust(widths[0]),
                *(text.ljust(width) for text, width in zip(row[1:], widths[1:], strict=True)),
            ]
            yield f"  {'  '.join(cells)}".rstrip()
        yield ""


def request_in_words(request: Request) -> str:
    """A request in a line: partition, what of which, for how long."""
    parts = [
        f"{request.nodes} node{'s' * (request.nodes != 1)}",
        f"{request.cpus} CPU{'s' * (request.cpus != 1)}",
        _memory(request.memory_mb),
        *(f"{count} {'GPU' if name == 'gpu' else name.removeprefix('gpu:')}" for name, count in request.gres),
        *(f"{count} license{'s' * (count != 1)} {name}" for name, count in request.licenses),
        f"for {duration(request.minutes)}",
        f"--constraint={request.constraint}" if request.constraint else "",
        f"an array of {request.tasks}" if request.tasks else "",
    ]
    place = "/".join(filter(None, (request.partition, request.qos)))
    return f"{place}: {', '.join(filter(None, parts))}"


def _memory(mebibytes: int) -> str:
    if mebibytes % _GIB:
        return f"{mebibytes} MiB"
    return f"{mebibytes // _GIB} GiB" if mebibytes else ""


def duration(minutes: int | None) -> str:
    """A time limit as Slurm writes it."""
    if minutes is None:
        return "ever"
    days, rest = divmod(minutes, _DAY)
    return f"{f'{days}-' if days else ''}{rest // _HOUR:02}:{rest % _HOUR:02}:00"


def _sum(changes: Iterable[Change]) -> int:
    return sum(change.jobs for change in changes)


def _counted(jobs: int) -> str:
    return f"{jobs} job{'s' * (jobs != 1)}"


def _named(counts: Mapping[str, int]) -> str:
    shown = [f"{name} {count}" for name, count in [*counts.items()][:_NAMED]]
    more = len(counts) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more else [])])

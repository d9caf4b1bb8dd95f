"""What happens in a run, as frozen values, made from ansible-runner's dictionaries by a total function."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

from deploy.run.diffs import Diff, diffs
from deploy.run.managed import Managed, managed
from deploy.run.message import clean, failure_message, one_line, shown_message

RawMapping = Mapping[str, Any]


class Status(StrEnum):
    """How a task ended on a host."""

    OK = "ok"
    CHANGED = "changed"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    SKIPPED = "skipped"


class Level(StrEnum):
    """How loud a notice is; OUTPUT is what Ansible printed outside of any event."""

    OUTPUT = "output"
    DEPRECATED = "deprecated"
    WARNING = "warning"
    ERROR = "error"


class Ending(StrEnum):
    """How a run came to its end; FINISHED says nothing about success."""

    FINISHED = "finished"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class PlayStarted:
    """A play begins. ``at`` is seconds since the epoch, here and below.

    ``phase`` is the id of the phase whose play it is, empty for other plays; ``play`` is its title.
    """

    at: float
    play: str
    phase: str = ""


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """A phase of a plan: its id, its title, the hosts that it is for, and the phases that it needs.

    ``after`` and ``after_everywhere`` are as ``plan.catalog.Phase`` has them.
    """

    phase: str
    title: str
    hosts: tuple[str, ...]
    after: tuple[str, ...] = ()
    after_everywhere: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """What the playbook that follows is to do, in order; without it nobody knows what did not run."""

    at: float
    phases: tuple[PlannedPhase, ...]


@dataclass(frozen=True, slots=True)
class PhaseEnded:
    """The play of a phase is over; ``hosts`` are those on which its last task ended."""

    at: float
    phase: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task begins on the hosts of its play; ``step`` is its id, where it has one."""

    at: float
    play: str
    role: str
    task: str
    path: str
    handler: bool = False
    step: str = ""


@dataclass(frozen=True, slots=True)
class HostResult:
    """How one task ended on one host; a loop is one result.

    ``ignored`` and ``rescued`` are true of failures (``ignored`` of unreachable hosts too) that the
    playbook takes care of itself: they fail nobody. ``answer`` is what a module that asks on deploy's behalf
    found out, under the key ``deploy_answer`` of its result; ``impact``, what a module says its change does
    to what runs (``deploy_impact``: kind, service, reasons, guarded); ``manages``, what the task keeps as it
    should be, by kind, and how it left it; ``pending``, what a module could not do and did not fail for, so
    that it is left to a later run (``deploy_pending``); ``phase``, the id of the phase that it belongs to,
    empty for other plays; ``step``, the id of the task, where it has one.
    """

    at: float
    host: str
    play: str
    role: str
    task: str
    path: str
    status: Status
    seconds: float
    message: str = ""
    ignored: bool = False
    rescued: bool = False
    diff: tuple[Diff, ...] = ()
    answer: Mapping[str, Any] | None = None
    impact: Mapping[str, Any] | None = None
    manages: Managed = field(default_factory=dict)
    pending: tuple[str, ...] = ()
    phase: str = ""
    step: str = ""

    @property
    def title(self) -> str:
        """``role : task``."""
        return f"{self.role} : {self.task}" if self.role else self.task

    @property
    def is_trouble(self) -> bool:
        """Whether this is a failure that the playbook does not handle itself."""
        return self.status in {Status.FAILED, Status.UNREACHABLE} and not (self.ignored or self.rescued)

    @property
    def verdict(self) -> str:
        """The status, or how a failure was taken care of: ``ignored``, ``rescued``."""
        return "ignored" if self.ignored else "rescued" if self.rescued else self.status.value


@dataclass(frozen=True, slots=True)
class HostVerified:
    """A host was asked whether it still is as it was recorded.

    ``phases`` are those that need not run, ``drift`` says what differs from its record.
    """

    at: float
    host: str
    phases: tuple[str, ...]
    drift: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOver:
    """What a host still has that the inventory no longer says; ``hint`` is the next thing to type.

    A host ``has_departed`` when the inventory does not name it any more.
    """

    at: float
    host: str
    things: tuple[str, ...]
    hint: str
    has_departed: bool = False

    def __str__(self) -> str:
        lost = (
            "left the inventory, and still has"
            if self.has_departed
            else "has, and the inventory says no more"
        )
        return f"{self.host}: {lost}: {', '.join(self.things)}\n  -> {self.hint}"


@dataclass(frozen=True, slots=True)
class Retry:
    """A task that waits for something tries again on a host."""

    at: float
    host: str
    role: str
    task: str
    attempts: int
    retries: int


@dataclass(frozen=True, slots=True)
class Notice:
    """Something Ansible says that belongs to no task."""

    at: float
    level: Level
    text: str


@dataclass(frozen=True, slots=True)
class HostStats:
    """Ansible's own count for a host; ``ok`` includes ``changed`` and what was ignored."""

    ok: int = 0
    changed: int = 0
    failed: int = 0
    unreachable: int = 0
    skipped: int = 0
    rescued: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """The recap at the end of a playbook: only complete runs have one."""

    at: float
    hosts: Mapping[str, HostStats]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of every playbook that came to an end."""

    at: float
    rc: int
    ending: Ending


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event that nothing is known about."""

    at: float
    kind: str
    text: str


Event = (
    Planned
    | PlayStarted
    | PhaseEnded
    | TaskStarted
    | HostResult
    | HostVerified
    | LeftOver
    | Retry
    | Notice
    | Stats
    | RunEnded
    | RawEvent
)

_RESULTS = {
    "runner_on_ok": Status.OK,
    "runner_on_failed": Status.FAILED,
    "runner_on_skipped": Status.SKIPPED,
    "runner_on_unreachable": Status.UNREACHABLE,
}
_DONE = frozenset({Status.OK, Status.CHANGED})
_NOTICES = {
    "verbose": Level.OUTPUT,
    "debug": Level.OUTPUT,
    "deprecated": Level.DEPRECATED,
    "warning": Level.WARNING,
    "system_warning": Level.WARNING,
    "error": Level.ERROR,
}


def parse(raw: object) -> Event:
    """The event in a raw dictionary. Never raises: what is unknown or malformed becomes a RawEvent."""
    event = raw if isinstance(raw, Mapping) else {"stdout": raw}
    kind = clean(event.get("event", "unknown"))
    at = _time(event.get("created"))
    try:
        return _known(kind, at, event) or RawEvent(at, kind, _text(event))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return RawEvent(at, kind, _text(event))


def _known(kind: str, at: float, event: RawMapping) -> Event | None:
    data: RawMapping = event.get("event_data") or {}
    if kind in _NOTICES:
        return Notice(at, _NOTICES[kind], _text(event).strip("\n"))
    return _host_result(_RESULTS[kind], at, data) if kind in _RESULTS else _of_playbook(kind, at, data)


def _of_playbook(kind: str, at: float, data: RawMapping) -> Event | None:
    match kind:
        case "playbook_on_play_start":
            return PlayStarted(at, one_line(data["name"]), _phase(data.get("pattern")))
        case "deploy_play_ended":
            phase = _phase(data.get("play_pattern"))
            return PhaseEnded(at, phase, tuple(map(one_line, data["hosts"]))) if phase else None
        case "playbook_on_task_start":
            return TaskStarted(
                at, *_place(data), handler=data.get("is_conditional") is True, step=_step(data)
            )
        case "runner_retry":
            result = data.get("res") or {}
            _, role, task, _ = _place(data)
            tries = (int(result.get("attempts", 0)), int(result.get("retries", 0)))
            return Retry(at, one_line(data["host"]), role, task, *tries)
        case "playbook_on_stats":
            return _stats(at, data)
    return None


def _host_result(status: Status, at: float, data: RawMapping) -> HostResult:
    result: RawMapping = data.get("res") or {}
    # A censored result has lost its "changed"; our callback plugin says it beside the result.
    if status is Status.OK and (result.get("changed") is True or data.get("deploy_changed") is True):
        status = Status.CHANGED
    play, role, task, path = _place(data)
    answer, impact = result.get("deploy_answer"), result.get("deploy_impact")
    return HostResult(
        at=at,
        host=one_line(data["host"]),
        play=play,
        role=role,
        task=task,
        path=path,
        status=status,
        seconds=round(float(data.get("duration") or 0.0), 3),
        message=_message(status, result),
        ignored=data.get("ignore_errors") is True or data.get("deploy_ignored") is True,
        rescued=data.get("deploy_rescued") is True,
        diff=diffs(result),
        answer=answer if isinstance(answer, Mapping) else None,
        impact=impact if isinstance(impact, Mapping) else None,
        manages=managed(str(data.get("task_action") or ""), result) if status in _DONE else {},
        pending=tuple(map(one_line, result.get("deploy_pending") or ())) if status in _DONE else (),
        phase=_phase(data.get("play_pattern")),
        step=_step(data),
    )


def _message(status: Status, result: RawMapping) -> str:
    if status in {Status.FAILED, Status.UNREACHABLE}:
        return failure_message(result)
    return "" if status is Status.SKIPPED else shown_message(result)


def _place(data: RawMapping) -> tuple[str, str, str, str]:
    return (
        one_line(data.get("play") or ""),
        one_line(data.get("role") or ""),
        one_line(data.get("task") or data.get("name") or data.get("task_action") or ""),
        one_line(data.get("task_path") or ""),
    )


def _phase(pattern: object) -> str:
    """The id of a phase from what its play names as its hosts (see ``plan.catalog.Phase.group``)."""
    _, is_phase, name = one_line(str(pattern or "")).partition("phase_")
    return name if is_phase else ""


def _step(data: RawMapping) -> str:
    """The id of a task, where it has one (see ``callback/deploy_events.py``)."""
    return one_line(str(data.get("deploy_step") or ""))


def _stats(at: float, data: RawMapping) -> Stats:
    theirs = {field.name: field.name for field in fields(HostStats)}
    theirs |= {"failed": "failures", "unreachable": "dark"}
    hosts = {}
    for host in data["processed"]:
        counts = {name: int((data.get(column) or {}).get(host, 0)) for name, column in theirs.items()}
        hosts[one_line(host)] = HostStats(**counts)
    return Stats(at, hosts)


def _text(event: RawMapping) -> str:
    return clean(event.get("stdout") or "")


def _time(created: object) -> float:
    try:
        return datetime.fromisoformat(str(created)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


_KINDS: dict[str, type[Event]] = {
    "planned": Planned,
    "play_started": PlayStarted,
    "phase_ended": PhaseEnded,
    "task_started": TaskStarted,
    "host_result": HostResult,
    "host_verified": HostVerified,
    "left_over": LeftOver,
    "retry": Retry,
    "notice": Notice,
    "stats": Stats,
    "run_ended": RunEnded,
    "raw": RawEvent,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_json(event: Event) -> str:
    """The event as one line of JSON, without its newline."""
    return json.dumps({"event": _NAMES[type(event)]} | asdict(event), separators=(",", ":"))


def from_json(line: str) -> Event:
    """The event in a line that ``to_json`` wrote; a line that it did not write becomes a RawEvent."""
    try:
        values = json.loads(line)
        kind = _KINDS[values["event"]]
        known = {field.name for field in fields(kind)}
        return _revive(kind, {name: value for name, value in values.items() if name in known})
    except (ValueError, KeyError, TypeError, AttributeError):
        return RawEvent(0.0, "unreadable", clean(line).strip())


def _revive(kind: type[Event], values: dict[str, Any]) -> Event:
    for name, enumeration in (("status", Status), ("level", Level), ("ending", Ending)):
        if name in values:
            values[name] = enumeration(values[name])
    if "diff" in values:
        values["diff"] = tuple(Diff(**part) for part in values["diff"])
    if kind is Planned:
        values["phases"] = [PlannedPhase(**{**part, **_tuples(part)}) for part in values["phases"]]
    for name in ("phases", "drift", "pending", "things"):
        if name in values:
            values[name] = tuple(values[name])
    if "manages" in values:
        values["manages"] = {
            # Journals of earlier versions hold names alone.
            kind: states if isinstance(states, dict) else {name: {} for name in states}
            for kind, states in values["manages"].items()
        }
    if kind is PhaseEnded:
        values["hosts"] = tuple(values["hosts"])
    elif "hosts" in values:
        values["hosts"] = {host: HostStats(**counts) for host, counts in values["hosts"].items()}
    return kind(**values)


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) for name, value in values.items() if isinstance(value, list)}

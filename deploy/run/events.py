"""ansible-runner's raw event dicts as typed events. Total: what is unknown stays a RawEvent."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a task ended on a host."""

    OK = "ok"
    CHANGED = "changed"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    SKIPPED = "skipped"
    IGNORED = "ignored"


@dataclass(frozen=True)
class Event:
    """``time`` is seconds since the epoch."""

    time: float


@dataclass(frozen=True)
class PlayStarted(Event):
    """A phase begins."""

    play: str


@dataclass(frozen=True)
class TaskStarted(Event):
    """A task begins on the play's hosts."""

    play: str
    role: str
    task: str
    path: str


@dataclass(frozen=True)
class HostResult(Event):
    """A task has ended on a host; ``seconds`` is how long it took there."""

    host: str
    play: str
    role: str
    task: str
    path: str
    status: Status
    seconds: float
    message: str = ""
    diff: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Notice(Event):
    """Something Ansible said that is not the result of a task: a warning, an error before the first task."""

    text: str


@dataclass(frozen=True)
class Stats(Event):
    """The playbook ended by itself; hosts without a failure are in ``processed`` alone."""

    processed: tuple[str, ...]


@dataclass(frozen=True)
class RawEvent(Event):
    """Anything else, by its name."""

    name: str


_KINDS: Mapping[str, type[Event]] = {
    kind.__name__: kind for kind in (PlayStarted, TaskStarted, HostResult, Notice, Stats, RawEvent)
}
_ENDINGS: Mapping[str, Status] = {
    "runner_on_ok": Status.OK,
    "runner_on_failed": Status.FAILED,
    "runner_on_unreachable": Status.UNREACHABLE,
    "runner_on_skipped": Status.SKIPPED,
}
_SPOKEN = frozenset({"warning", "error", "deprecated"})
_LONGEST_MESSAGE = 2000
_LONGEST_DIFF = 20000


def parse(raw: Mapping[str, Any], *, time: float) -> Event:
    """The typed event of a raw one that arrived at ``time``."""
    name = str(raw.get("event", ""))
    data = raw.get("event_data")
    data = data if isinstance(data, Mapping) else {}
    if name == "playbook_on_play_start":
        return PlayStarted(time, _text(data, "play"))
    if name == "playbook_on_task_start":
        return TaskStarted(time, **_place(data))
    if name in _ENDINGS:
        return _host_result(_ENDINGS[name], data, time)
    if name == "playbook_on_stats":
        processed = data.get("processed")
        return Stats(time, tuple(sorted(map(str, processed))) if isinstance(processed, Mapping) else ())
    spoken = str(raw.get("stdout") or "").strip()
    if name in _SPOKEN or (name == "verbose" and spoken.startswith(("[ERROR]", "[WARNING]", "ERROR!"))):
        return Notice(time, spoken[:_LONGEST_MESSAGE]) if spoken else RawEvent(time, name)
    return RawEvent(time, name)


def _host_result(status: Status, data: Mapping[str, Any], time: float) -> HostResult:
    result = data.get("res")
    result = result if isinstance(result, Mapping) else {}
    if status is Status.OK and result.get("changed"):
        status = Status.CHANGED
    if status is Status.FAILED and data.get("ignore_errors"):
        status = Status.IGNORED
    bad = status in {Status.FAILED, Status.UNREACHABLE, Status.IGNORED}
    return HostResult(
        time,
        host=_text(data, "host"),
        **_place(data),
        status=status,
        seconds=_seconds(data.get("duration")),
        message=_message(result)[:_LONGEST_MESSAGE] if bad else "",
        diff=tuple(_diffs(result)),
    )


def _place(data: Mapping[str, Any]) -> dict[str, str]:
    return {
        "play": _text(data, "play"),
        "role": _text(data, "role"),
        "task": _text(data, "task"),
        "path": _text(data, "task_path"),
    }


def _text(data: Mapping[str, Any], key: str) -> str:
    return str(data.get(key) or "")


def _seconds(value: object) -> float:
    return round(float(value), 3) if isinstance(value, (int, float)) else 0.0


def _message(result: Mapping[str, Any]) -> str:
    """Why a task failed: its message, else the last lines of its errors or output; items' reasons joined."""
    if "censored" in result:
        return str(result["censored"])
    items = result.get("results")
    if isinstance(items, list):
        reasons = [
            _message(item)
            for item in items
            if isinstance(item, Mapping) and (item.get("failed") or item.get("unreachable"))
        ]
        if reasons:
            return "; ".join(dict.fromkeys(reasons))
    parts = [str(result.get("msg") or "").strip()]
    for key in ("stderr", "module_stderr", "stdout", "module_stdout"):
        text = str(result.get(key) or "").strip()
        if text and text not in parts[0]:
            parts.append("\n".join(text.splitlines()[-5:]))
            break
    return "\n".join(part for part in parts if part) or "no reason given"


def _diffs(result: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """Differences of files, with their headers; each side cut where it is very long."""
    found = result.get("diff")
    entries = found if isinstance(found, list) else [found]
    return [
        {
            key: str(entry.get(key, ""))[:_LONGEST_DIFF]
            for key in ("before_header", "after_header", "before", "after", "prepared")
            if entry.get(key)
        }
        for entry in entries
        if (isinstance(entry, Mapping)
        and entry.get("before") != entry.get("after"))
        or (isinstance(entry, Mapping) and entry.get("prepared"))
    ]


def to_json(event: Event) -> dict[str, Any]:
    """An event as plain data for the journal."""
    return {"event": type(event).__name__, **asdict(event)}


def from_json(data: Mapping[str, Any]) -> Event:
    """The event that ``to_json`` wrote; what a later version wrote and this one does not know is raw."""
    fields = dict(data)
    name = str(fields.pop("event", ""))
    kind = _KINDS.get(name)
    if kind is None:
        return RawEvent(float(fields.get("time", 0.0)), name)
    known = {key: value for key, value in fields.items() if key in kind.__dataclass_fields__}
    if kind is HostResult:
        known["status"] = Status(known["status"])
        known["diff"] = tuple(known.get("diff", ()))
    if kind is Stats:
        known["processed"] = tuple(known["processed"])
    return kind(**known)

"""What scontrol has to be told so that reservations are as they are declared.

Times are those of the controller's clock, without a zone, as scontrol shows and takes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

Entry = Mapping[str, Any]
Shown = Mapping[str, str]
Change = tuple[str, str, str]
"""Slurm's word, and what it is before and after."""

_FORM = "%Y-%m-%dT%H:%M:%S"
_PERIODS = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "weekday": timedelta(days=1),
    "weekend": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_FLAGS = {"hour": "HOURLY", "day": "DAILY", "weekday": "WEEKDAY", "weekend": "WEEKEND", "week": "WEEKLY"}
_SATURDAY = 5
_LISTS = {"users": "Users", "accounts": "Accounts", "user_groups": "Groups"}
_WORDS = {"partition": "PartitionName", "features": "Features"}
_UNSEEN = {"tres": "TRES", "licenses": "Licenses"}
"""What scontrol does not show as it was told: TRES with the nodes' CPUs, licenses in its own form."""
_UNSET = {"(null)", "", "N/A"}
_SLURMS_OWN = {"SPEC_NODES", "ALL_NODES", "PART_NODES"}
"""Flags that say what its nodes are."""


class Step(NamedTuple):
    """A command of scontrol, and what it changes, in words."""

    words: tuple[str, ...]
    name: str
    before: str
    after: str
    former: tuple[str, ...] = ()
    """Of one that is made anew: the command that makes it as it was, where Slurm refuses this one."""


def parse(text: str) -> dict[str, Shown]:
    """By name what ``scontrol --oneliner show reservation`` shows."""
    shown: dict[str, Shown] = {}
    for line in text.splitlines():
        found = dict(re.findall(r"(?:^|\s)([A-Za-z]+)=(\S*)", line))
        if "ReservationName" in found:
            shown[found["ReservationName"]] = found
    return shown


def moment(text: str) -> datetime:
    """A time as it is declared, or as scontrol shows it; raises ValueError."""
    return datetime.fromisoformat(text)


def seconds(duration: str) -> int:
    """A duration as Slurm writes it (sbatch(1), --time): minutes, hours:minutes:seconds, days-hours."""
    days, dash, rest = duration.rpartition("-")
    numbers = [int(part) for part in rest.split(":")]
    factors = (3600, 60, 1) if dash or len(numbers) > 2 else (60, 1)  # noqa: PLR2004
    return int(days or 0) * 86400 + sum(n * f for n, f in zip(numbers, factors))  # noqa: B905


def times(entry: Entry, now: datetime) -> tuple[datetime, datetime] | None:
    """When it begins and ends, of one that comes again the next time; None where it is over."""
    start = moment(entry["start"])
    lasts = (
        moment(entry["end"]) - start if entry.get("end") else timedelta(seconds=seconds(entry["duration"]))
    )
    every = entry.get("every")
    if every:
        period = _PERIODS[every]
        if start + lasts <= now:
            start += ((now - start - lasts) // period + 1) * period
        while not _is_its_day(every, start):
            start += period
    return (start, start + lasts) if start + lasts > now else None


def _is_its_day(every: str, day: datetime) -> bool:
    is_weekend = day.weekday() >= _SATURDAY
    return every not in {"weekday", "weekend"} or is_weekend == (every == "weekend")


class There(NamedTuple):
    """What the reservations that are declared are compared with."""

    shown: Mapping[str, Shown]
    """By name what scontrol shows."""
    before: Mapping[str, Entry]
    """By name what was declared the last time, resolved."""
    now: datetime
    alike: Callable[[str, str], bool]
    """Whether two lists of nodes are the same."""


def plan(entries: Sequence[Entry], nodes: Mapping[str, str], there: There) -> Iterator[Step]:
    """The commands; those that take away come first, as nodes may go from one reservation to another.

    What is made anew is deleted right before, so that nothing which Slurm refuses comes between.
    """
    wanted = {entry["name"]: resolved(entry, nodes) for entry in entries}
    for name in there.before:
        if name not in wanted and name in there.shown:
            yield Step(("delete", f"ReservationName={name}"), name, "present", "")
    due = {
        name: when
        for name, entry in wanted.items()
        if entry.get("nodes") != "" and (when := _next(entry, there.shown.get(name), there.now))
    }
    for name, when in due.items():
        if name not in there.shown:
            yield _created(wanted[name], when, there.now)
        elif _is_made_anew(wanted[name], there):
            yield Step(("delete", f"ReservationName={name}"), name, "present", "")
            yield _created(wanted[name], when, there.now)._replace(former=_former(name, there).words)
        else:
            yield from _updated(wanted[name], when, there)


def _next(entry: Entry, shown: Shown | None, now: datetime) -> tuple[datetime, datetime] | None:
    """When it is, or is to be. One that comes again is not made within its time.

    Slurm counts all later times from the first, which would then be too late.
    """
    when = times(entry, now)
    if not when or not entry.get("every") or when[0] > now:
        return when
    return when if shown and moment(shown["StartTime"]) <= now else times(entry, when[1])


def _is_made_anew(entry: Entry, there: There) -> bool:
    """Whether it differs in what no update changes: Slurm refuses features, and TRES cannot be taken away."""
    name = entry["name"]
    has = there.shown[name].get("Features", "")
    other_features = "features" in entry and entry["features"] != has
    return other_features or ("tres" in there.before.get(name, {}) and "tres" not in entry)


def resolved(entry: Entry, nodes: Mapping[str, str]) -> dict[str, Any]:
    """An entry as it is remembered: what was not said is not there, and its nodes are one text.

    That is empty where Slurm knows none of them yet.
    """
    said = {key: value for key, value in entry.items() if value not in (None, [], "") and key != "groups"}
    if "node_count" not in said:
        named = ",".join(entry.get("nodes") or ()) or ("" if entry.get("groups") else "ALL")
        said["nodes"] = nodes.get(entry["name"], named)
    if not any(key in said for key in _LISTS):
        said["users"] = ["root"]
    return said


def _flags(entry: Entry) -> set[str]:
    flags = {*entry.get("flags", ())} | ({_FLAGS[entry["every"]]} if entry.get("every") else set())
    # All of a partition, also when it gets another node.
    return flags | ({"PART_NODES"} if entry.get("nodes") == "ALL" and "partition" in entry else set())


def _fields(entry: Entry) -> dict[str, str]:
    """What it has in Slurm's words, but for its times, flags and nodes."""
    fields = {word: str(entry[key]) for key, word in _WORDS.items() if key in entry}
    return fields | {word: ",".join(entry[key]) for key, word in _LISTS.items() if key in entry}


def _unseen(entry: Entry) -> dict[str, str]:
    given = {word: entry[key] for key, word in _UNSEEN.items() if key in entry}
    return {word: value if isinstance(value, str) else ",".join(value) for word, value in given.items()}


def _created(entry: Entry, when: tuple[datetime, datetime], now: datetime) -> Step:
    start, end = when
    told = {
        "StartTime": "now" if start <= now else start.strftime(_FORM),
        "EndTime": end.strftime(_FORM),
        **({"NodeCnt": str(entry["node_count"])} if "node_count" in entry else {"Nodes": entry["nodes"]}),
        **_fields(entry),
        **_unseen(entry),
    }
    if flags := _flags(entry):
        told["Flags"] = ",".join(sorted(flags))
    words = tuple(f"{word}={value}" for word, value in told.items())
    name = entry["name"]
    return Step(("create", "reservation", f"ReservationName={name}", *words), name, "", " ".join(words))


def _former(name: str, there: There) -> Step:
    """Makes what was there again; of one that nobody declared before as far as scontrol shows it."""
    shown = there.shown[name]
    entry = {**there.before.get(name, {})}
    if not entry.get("nodes") and "node_count" not in entry:
        lists = {**_LISTS, "licenses": "Licenses"}
        seen = {key: word for key, word in {**_WORDS, **lists}.items() if shown.get(word, "") not in _UNSET}
        entry |= {key: shown[word].split(",") if key in lists else shown[word] for key, word in seen.items()}
        entry |= {"name": name, "nodes": shown.get("Nodes", ""), "flags": _shown_flags(shown) - _SLURMS_OWN}
    # What began there meanwhile does not keep it away.
    entry["flags"] = [*entry.get("flags", ()), "IGNORE_JOBS"]
    return _created(entry, (moment(shown["StartTime"]), moment(shown["EndTime"])), there.now)


def _updated(entry: Entry, when: tuple[datetime, datetime], there: There) -> Iterator[Step]:
    name = entry["name"]
    shown, before = there.shown[name], there.before.get(name, {})
    changes = [
        *_times(when, shown, there.now),
        *_nodes(entry, shown, there.alike),
        *_others(entry, shown, before),
        *_changed_flags(entry, shown, before),
    ]
    if changes:
        words = tuple(f"{word}={value}" for word, _, value in changes)
        was = " ".join(f"{word}={value}" for word, value, _ in changes if value)
        yield Step(("update", "reservation", f"ReservationName={name}", *words), name, was, " ".join(words))


def _times(when: tuple[datetime, datetime], shown: Shown, now: datetime) -> Iterator[Change]:
    start, end = when
    begins, ends = moment(shown["StartTime"]), moment(shown["EndTime"])
    # One that was made late began when it was made.
    if begins != start and not start <= begins <= now:
        yield "StartTime", shown["StartTime"], "now" if start <= now else start.strftime(_FORM)
    if ends != end:
        yield "EndTime", shown["EndTime"], end.strftime(_FORM)


def _nodes(entry: Entry, shown: Shown, alike: Callable[[str, str], bool]) -> Iterator[Change]:
    has = shown.get("Nodes", "")
    if "node_count" in entry:
        count = shown.get("NodeCnt", "")
        if count != str(entry["node_count"]):
            yield "NodeCnt", count, str(entry["node_count"])
    elif entry["nodes"] == "ALL":
        if not {"ALL_NODES", "PART_NODES"} & _shown_flags(shown):
            yield "Nodes", has, "ALL"
    elif not alike(has, entry["nodes"]):
        yield "Nodes", has, entry["nodes"]


def _others(entry: Entry, shown: Shown, before: Entry) -> Iterator[Change]:
    for word, value in {**dict.fromkeys(_fields(before), ""), **_fields(entry)}.items():
        has = "" if shown.get(word) in _UNSET else shown.get(word, "")
        if sorted(has.split(",")) != sorted(value.split(",")):
            yield word, has, value
    was = _unseen(before)
    for word, value in {**dict.fromkeys(was, ""), **_unseen(entry)}.items():
        if value != was.get(word):
            yield word, was.get(word, ""), value


def _changed_flags(entry: Entry, shown: Shown, before: Entry) -> Iterator[Change]:
    has, wanted = _shown_flags(shown), _flags(entry)
    if missing := wanted - has:
        yield "Flags+", "", ",".join(sorted(missing))
    # Slurm adds flags of its own.
    if surplus := (_flags(before) - wanted) & has:
        yield "Flags-", "", ",".join(sorted(surplus))


def _shown_flags(shown: Shown) -> set[str]:
    return {*shown.get("Flags", "").split(",")}

"""The state of a site: as a table of plain cells, and as data for programs."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from deploy.judge.age import age
from deploy.judge.database_lead import members_as_data, members_in_words
from deploy.judge.last_drill import LastDrill
from deploy.judge.leading import Leading
from deploy.judge.node_status import NodeStatus, Reach
from deploy.judge.site_status import JudgedHost, SiteStatus

HEADER = ("host", "slurm", "services", "hardware", "clock", "drift", "converged")
_NOTHING = "-"


class Mood(StrEnum):
    """How a cell is meant: QUIET is nothing to look at."""

    QUIET = "quiet"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True)
class Cell:
    """A word of the table."""

    text: str
    mood: Mood = Mood.QUIET


def rows(status: SiteStatus) -> list[tuple[Cell, ...]]:
    """A row per host, under HEADER, the most important first."""
    return [tuple(_row(host, status.at)) for host in status.hosts]


def lines(status: SiteStatus) -> Iterator[str]:
    """Everything as plain lines: the table, what is wrong, the verdict."""
    table = [HEADER, *(tuple(cell.text for cell in row) for row in rows(status))]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADER))]
    for row in table:
        yield "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
    for host in status.hosts:
        yield from [""] * bool(host.findings)
        for finding in host.findings:
            yield from str(finding).splitlines()
    yield ""
    yield from site_lines(status)
    yield verdict(status)


def verdict(status: SiteStatus) -> str:
    """The whole site in one line."""
    count = len(status.hosts)
    hosts = f"{count} host{'s' * (count != 1)}"
    bad, unreachable = len(status.bad), len(status.unreachable)
    wrong = [f"{unreachable} unreachable"] * bool(unreachable) + [f"{bad} with something wrong"] * bool(bad)
    return f"{hosts}: {', '.join([*wrong, f'{count - bad - unreachable} well'])}"


def site_lines(status: SiteStatus) -> Iterator[str]:
    """What is so of the site as a whole, where there is something to say."""
    yield from _leading_line(status)
    if status.database:
        yield f"database: {members_in_words(status.database)}"
    if status.drill:
        ago, before = age(status.at - status.drill.at), age(status.drill.at - status.drill.made_at)
        yield f"last drill: {status.drill.outcome} {ago} ago, with a backup that was {before} old"


def _leading_line(status: SiteStatus) -> Iterator[str]:
    """Who leads of several controllers, and how the others stand; nothing where there is one."""
    if status.leading is None:
        return
    found, since = status.leading.leaders, status.leading.since
    lasts = "" if since is None else f", for {age(status.at - since)} at least"
    others = [f"{name} {how}" for name, how in status.leading.stands.items() if name not in found]
    lead = f"{' and '.join(found)} lead{'s' * (len(found) == 1)}{lasts}" if found else "no controller leads"
    yield "; ".join([lead, *others])


def as_json(status: SiteStatus) -> dict[str, Any]:
    """The state for programs; of several controllers who leads, and how each stands."""
    several = {"controllers": _leading_as_json(status.leading)} if status.leading else {}
    if status.database:
        several["database"] = members_as_data(status.database)
    return {
        "at": _timestamp(status.at),
        "exit_code": int(status.exit_code),
        **several,
        "last_drill": _drill_as_json(status.drill),
        "hosts": {host.status.name: _host_as_json(host) for host in status.hosts},
    }


def _drill_as_json(drill: LastDrill | None) -> dict[str, Any] | None:
    if drill is None:
        return None
    return {
        "at": _timestamp(drill.at),
        "backup_made_at": _timestamp(drill.made_at),
        "outcome": drill.outcome,
    }


def _leading_as_json(leading: Leading) -> dict[str, Any]:
    found = leading.leaders
    return {
        "leader": found[0] if len(found) == 1 else None,
        "leads_at_least_since": _timestamp(leading.since),
        "stands": dict(leading.stands),
    }


def _row(host: JudgedHost, now: float) -> Iterator[Cell]:
    status = host.status
    moods = {
        Reach.UNREACHABLE: " unreachable",
        Reach.FAILED: " gave no answer",
        Reach.POWERED_DOWN: " powered down",
    }
    mood = Mood.BAD if host.is_bad else Mood.WARNING if host.findings else Mood.QUIET
    yield Cell(status.name + moods.get(status.reach, ""), mood)
    yield _slurm(host)
    yield _services(host)
    yield _hardware(status)
    yield _clock(host)
    yield _drift(status)
    yield _converged(status, now)


def _slurm(host: JudgedHost) -> Cell:
    node = host.status.slurm
    if node:
        return Cell(node.word, Mood.BAD if node.is_drained or node.is_down else Mood.QUIET)
    if _has(host, "node-not-in-slurm"):
        return Cell("not known", Mood.BAD)
    if host.status.slurm_silence:
        return Cell("silent", Mood.BAD)
    return Cell("?", Mood.WARNING) if host.is_node else Cell(_NOTHING)


def _services(host: JudgedHost) -> Cell:
    if host.status.reach is not Reach.ANSWERED:
        return Cell(_NOTHING)
    if host.down:
        return Cell("no " + ", ".join(service.name for service in host.down), Mood.BAD)
    return Cell("units failed", Mood.WARNING) if _has(host, "unit-failed") else Cell("ok")


def _hardware(status: NodeStatus) -> Cell:
    if status.shortfalls is None:
        return Cell(_NOTHING)
    names = ", ".join(shortfall.partition(":")[0] for shortfall in status.shortfalls)
    return Cell(f"less {names}", Mood.BAD) if names else Cell("ok")


def _clock(host: JudgedHost) -> Cell:
    clock = host.status.clock
    if clock is None:
        return Cell(_NOTHING)
    if _has(host, "clock-off"):
        return Cell(f"{clock.certain:+.1f} s", Mood.BAD)
    if _has(host, "clock-unsynchronized"):
        return Cell("not set", Mood.WARNING)
    return Cell(f"<{max(-clock.least, clock.most, 0.01):.2f} s")


def _drift(status: NodeStatus) -> Cell:
    record = status.record
    if record is None or record.why or not (status.convergence or status.has_records):
        return Cell(_NOTHING)
    if count := len(record.drift):
        return Cell(f"{count} thing{'s' * (count != 1)}", Mood.BAD)
    if record.stale:
        return Cell("site changed", Mood.WARNING)
    return Cell("unfinished", Mood.WARNING) if record.pending else Cell("none")


def _converged(status: NodeStatus, now: float) -> Cell:
    if status.reach is Reach.NOT_ASKED:
        return Cell("not in the inventory", Mood.BAD)
    end = status.convergence
    if end is None:
        return Cell("never", Mood.WARNING)
    at = datetime.fromtimestamp(end.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Cell(f"{age(now - end.at)} ago ({at}, {end.version})")


def _has(host: JudgedHost, reference: str) -> bool:
    return any(finding.reference == reference for finding in host.findings)


def _host_as_json(host: JudgedHost) -> dict[str, Any]:
    status = host.status
    return {
        "reach": status.reach.value,
        "services": {s.name: {k: v for k, v in asdict(s).items() if k != "name"} for s in status.services},
        "failed_units": list(status.failed_units),
        "shortfalls": None if status.shortfalls is None else list(status.shortfalls),
        "clock": status.clock and asdict(status.clock),
        "slurm": status.slurm
        and {
            "state": status.slurm.word,
            "flags": list(status.slurm.flags),
            "reason": status.slurm.reason,
            "by": status.slurm.by,
            "since": _timestamp(status.slurm.since),
        },
        "record": status.record
        and {
            "unanswered": status.record.why,
            "drift": [str(drift) for drift in status.record.drift],
            "converged": sorted(status.record.converged),
            "outdated": [*status.record.outdated, *status.record.unrecorded],
            "pending": [text for texts in status.record.pending.values() for text in texts],
        },
        "converged": status.convergence
        and {
            "at": _timestamp(status.convergence.at),
            "version": status.convergence.version,
            "run": status.convergence.run,
        },
        "findings": [{k: v for k, v in asdict(f).items() if k != "where"} for f in host.findings],
    }


def _timestamp(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")

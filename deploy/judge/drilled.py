"""Whether a cluster that was made of a backup has what the backup's manifest says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Association = tuple[str, str, str, int]
"""Account, user (empty for that of the account itself), shares, usage in CPU seconds."""

_SHOWN = 5
_TOLERATED = 0.1
_SECONDS_UNSAVED = 900
"""slurmctld adds usage up every five minutes by default, and saves it as often."""


class Verdict(StrEnum):
    """How a comparison ended."""

    SAME = "same"
    DIFFERENT = "different"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class Compared:
    """One thing, as the backup's manifest has it and as it was found; ``note`` says why."""

    what: str
    backup: str
    found: str
    verdict: Verdict
    note: str = ""


@dataclass(frozen=True)
class Restored:
    """What was found; ``database`` before Slurm's daemons started, the rest before a node could run a job.

    ``jobs`` are states by id. Usage halves in ``half_life`` seconds, never if that is 0; None where a site
    has it begin anew now and then.
    """

    database: Mapping[str, int]
    jobs: Mapping[int, str] = field(default_factory=dict)
    next_job_id: int | None = None
    associations: Sequence[Association] = ()
    half_life: float | None = 0.0


def compared(manifest: Mapping[str, Any], restored: Restored, age: float) -> tuple[Compared, ...]:
    """Everything that a manifest says of a cluster, beside what was found; ``age`` in seconds."""
    return (
        *_database(manifest["database"], restored),
        *_queue(manifest.get("queue") or {}, restored),
        *_associations(manifest.get("fair_share") or {}, restored),
        _usage(manifest, restored, age),
    )


def _database(said: Mapping[str, Any], restored: Restored) -> Iterator[Compared]:
    for what, title in (
        ("tables", "tables of the database"),
        ("jobs", "rows of jobs in the accounting"),
        ("associations", "rows of associations in the accounting"),
    ):
        yield _equal(title, said[what], restored.database.get(what))


def _equal(what: str, said: object, found: object) -> Compared:
    verdict = Verdict.SAME if said == found else Verdict.DIFFERENT
    return Compared(what, str(said), str(found), verdict)


def _queue(said: Mapping[str, Any], restored: Restored) -> Iterator[Compared]:
    if not said:
        why = "slurmctld did not answer when the backup was made"
        yield Compared("jobs of the queue", "", str(len(restored.jobs)), Verdict.NOT_COMPARED, why)
        return
    for what, title in (("running", "jobs on nodes"), ("waiting", "jobs that wait")):
        yield _of_queue(title, said[what], restored)
    following, found = said.get("next_job_id"), restored.next_job_id
    if following:
        is_later = found is not None and found >= following
        verdict = Verdict.SAME if is_later else Verdict.DIFFERENT
        yield Compared("id of the next job, or a later one", str(following), str(found), verdict)


def _of_queue(title: str, said: Sequence[int], restored: Restored) -> Compared:
    """Every job of the queue is known; the state of one may be another by now, as its node is not there."""
    missing = [job for job in said if job not in restored.jobs]
    newest = max(restored.jobs, default=0)
    unsaved = [job for job in missing if job > newest]
    lost = [job for job in missing if job <= newest]
    note = f"not there: {_listed(lost)}" if lost else ""
    if unsaved:
        note += "; " * bool(note)
        note += f"not there, being newer than all that slurmctld had saved by then: {_listed(unsaved)}"
    # A state without a job, of a queue with some, is nothing that the last seconds explain.
    is_same = not lost and (not unsaved or bool(restored.jobs))
    verdict = Verdict.SAME if is_same else Verdict.DIFFERENT
    return Compared(title, str(len(said)), str(len(said) - len(missing)), verdict, note)


def _associations(said: Mapping[str, Any], restored: Restored) -> Iterator[Compared]:
    if not said:
        found = str(len(restored.associations))
        why = "the backup does not say: slurmctld did not answer, or an older deploy made it"
        yield Compared("associations and shares", "", found, Verdict.NOT_COMPARED, why)
        return
    then = sorted((row[0], row[1], row[2]) for row in said["associations"])
    now = sorted((row[0], row[1], row[2]) for row in restored.associations)
    of_then, of_now = ({row[:2] for row in rows} for rows in (then, now))
    changed = [f"{account}/{user}" if user else account for account, user in sorted(of_then ^ of_now)]
    note = f"only in one of them: {_listed(changed)}" if changed else ""
    verdict = Verdict.DIFFERENT if changed else Verdict.SAME
    yield Compared("associations that slurmctld knows", str(len(then)), str(len(now)), verdict, note)
    other = sorted({*then} - {*now})
    note = f"other ones: {_listed([' '.join(filter(None, row)) for row in other])}" if other else ""
    verdict = Verdict.DIFFERENT if other else Verdict.SAME
    yield Compared("their shares", str(len(then)), str(len(then) - len(other)), verdict, note)


def _usage(manifest: Mapping[str, Any], restored: Restored, age: float) -> Compared:
    """The usage of all, which decays, and of which the last minutes may not have been saved."""
    title = "usage for fair share, in CPU seconds"
    said = manifest.get("fair_share") or {}
    then = _whole(said.get("associations", ()))
    now = _whole(restored.associations)
    if then is None or now is None:
        why = "the backup or slurmctld does not say"
        return Compared(title, str(then or ""), str(now or ""), Verdict.NOT_COMPARED, why)
    if restored.half_life is None:
        why = "the site has it begin anew (PriorityUsageResetPeriod)"
        return Compared(title, str(then), str(now), Verdict.NOT_COMPARED, why)
    left = then * 0.5 ** (age / restored.half_life) if restored.half_life else then
    tolerated = max(_TOLERATED * then, said["cpus"] * _SECONDS_UNSAVED)
    # Jobs that ran are counted on, until they are known to have ended.
    grows = bool((manifest.get("queue") or {}).get("running"))
    is_same = now >= left - tolerated and (grows or now <= then + tolerated)
    note = f"{left:.0f} are left by decay; {tolerated:.0f} more or less are tolerated"
    return Compared(title, str(then), str(now), Verdict.SAME if is_same else Verdict.DIFFERENT, note)


def _whole(rows: Sequence[Sequence[Any]]) -> int | None:
    return next((int(row[3]) for row in rows if (row[0], row[1]) == ("root", "")), None)


def _listed(names: Sequence[object]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(str(name) for name in names[:_SHOWN]) + more

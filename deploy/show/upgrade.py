"""What an upgrade of Slurm came to, as text and for programs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from deploy.judge.upgrade_outcome import Outcome
from deploy.site.node_lists import fold

if TYPE_CHECKING:
    from deploy.engine.proofs import Proofs


def upgrade_lines(came: Outcome) -> Iterator[str]:
    """A few lines, the last what became of jobs."""
    if came.is_nothing:
        yield f"Slurm {came.wanted} runs on every host already: nothing to do"
        return
    old = sorted(set(filter(None, came.before.values())))
    yield f"Slurm {', '.join(old)} -> {came.wanted} on {fold(came.done)} in {came.seconds:.0f} s"
    if came.rehearsal:
        yield f"database: converted in {came.rehearsal['seconds']} s in the rehearsal, nothing lost"
    if came.backup:
        yield f"backup: {came.backup} on {fold(came.backup_on)}"
    states = Counter(f"{fate.before.lower()} -> {fate.now.lower()}" for fate in came.jobs)
    said = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    named = f" ({said})" if said else ""
    known = f"{len(came.jobs)}{named}; {len(came.hurt)} lost or started again"
    yield f"users' jobs: {came.unknown or known}"
    for fate in came.hurt:
        yield f"  job {fate.job}: {fate.trouble}"
    if came.submitted:
        yield (
            f"submission: {came.submitted} jobs were taken, none for {came.silence:.0f} s at the longest; "
            f"{len(came.without_end)} of them did not end as they should"
        )
    for job in came.without_end:
        yield f"  job {job} of the validation user has not one row that says COMPLETED"
    yield from (f"note: {note}" for note in came.notes)


def command_lines(proofs: "Proofs") -> Iterator[str]:
    """What users type that comes out otherwise than before."""
    if proofs.commands is None:
        return
    if not proofs.commands:
        yield "what users type comes out as before"
    for change in proofs.commands:
        yield f"{change.id}: {change.before} before, {change.after} now"


def as_json(came: Outcome, proofs: "Proofs | None") -> dict[str, Any]:
    """Everything, for programs."""
    return {
        **asdict(came),
        "hurt": [asdict(fate) for fate in came.hurt],
        "validation": proofs.as_data() if proofs else None,
        "exit_code": int(came.exit_code or (proofs.exit_code if proofs else came.exit_code)),
    }

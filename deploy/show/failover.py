"""What a planned move of the lead would do and came to, as text and for programs."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from deploy.engine.failover import Intent, Moved
from deploy.site.node_lists import fold


def intent_line(intent: Intent) -> str:
    """What is to be done."""
    jobs = f"{intent.jobs} job{'s' * (intent.jobs != 1)}"
    return f"{intent.leader} takes the lead from {intent.before}, with {jobs}"


def moved_lines(came: Moved, failback: str) -> Iterator[str]:
    """What came of it; ``failback`` is the command that gives the lead back to the first controller."""
    if came.is_nothing:
        yield f"{came.leader} leads already: nothing to do"
        return
    yield f"{came.leader} leads, {came.before} did before; without an answer for {came.silence:.1f} s"
    yield f"jobs: {len(came.jobs)} were there; {len(came.hurt)} lost or started again"
    for fate in came.hurt:
        yield f"  job {fate.job}: {fate.trouble}"
    if came.silent:
        yield f"no slurmctld on {fold(came.silent)}; to start the first one, which then leads: {failback}"


def as_json(came: Moved) -> dict[str, Any]:
    """The same for programs."""
    return {
        **asdict(came),
        "hurt": [asdict(fate) for fate in came.hurt],
        "exit_code": int(came.exit_code),
    }

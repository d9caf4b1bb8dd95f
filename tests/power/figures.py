"""What a loss of power came to; docs/generators/reliability.py loads this file and tests/spans.py alone."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.spans import span

POWER_HEAD = (
    "without power",
    "rounds",
    "s until all was well",
    "jobs",
    "went on or ended",
    "started again",
    "ended with their node, as asked",
    "lost",
    "just taken: kept, of",
    "changes of the next run",
    "by hand",
    "with trouble",
)
_WITH_NODE = frozenset({"NODE_FAIL", "REQUEUED"})


@dataclass(frozen=True)
class Job:
    """One that was there when the power went; ``name`` is the test's own for it."""

    name: str
    node_lost: bool
    """Whether a node that it ran on lost its power."""
    requeues: bool = True
    """Whether Slurm may start it again."""
    is_settled: bool = True
    """Whether slurmctld had saved that it runs; one that was just taken may be lost with it."""


@dataclass(frozen=True)
class Fate:
    """What became of a job; ``trouble`` is empty where it is what was to be expected."""

    job: Job
    came: str
    trouble: str = ""


KEPT, AGAIN, WITH_NODE, LOST, JUST_KEPT, JUST_LOST = (
    *("kept", "started again", "ended with its node", "lost", "just taken and kept", "just taken and lost"),
)


def fates(
    jobs: Iterable[Job],
    rows: Iterable[tuple[str, str]],
    begun: Sequence[str],
    ended: Sequence[str],
) -> list[Fate]:
    """``rows`` are names and states in accounting, the oldest first; the others are what jobs wrote."""
    states: dict[str, list[str]] = {}
    for name, state in rows:
        states.setdefault(name, []).append(state.partition(" ")[0])
    begins, ends = Counter(begun), Counter(ended)
    return [_fate(job, states.get(job.name, []), begins[job.name], ends[job.name]) for job in jobs]


def _fate(job: Job, states: Sequence[str], begins: int, ends: int) -> Fate:
    has_completed = states[-1:] == ["COMPLETED"] and ends >= 1
    if not job.is_settled:
        return Fate(job, JUST_KEPT if has_completed else JUST_LOST)
    is_again = len(states) > 1 or begins > 1
    came, wrong = KEPT, ""
    if job.node_lost and not job.requeues:
        came, wrong = WITH_NODE, "" if states == ["NODE_FAIL"] and not ends else "was to end with its node"
    elif not has_completed:
        wrong = "lost"
    elif ends > 1:
        wrong = "completed twice"
    elif is_again and not job.node_lost:
        wrong = "started again, though its node had power"
    elif is_again:
        is_told = _WITH_NODE.issuperset(states[:-1])
        came, wrong = AGAIN, "" if is_told else "its first start is not told as one that a node ended"
    told = f"{job.name}: {wrong}: accounting {', '.join(states) or 'nothing'}; begun {begins}, ended {ends}"
    return Fate(job, LOST, told) if wrong else Fate(job, came)


def counted(found: Collection[Fate]) -> dict[str, int]:
    """How many jobs came to what."""
    counts = Counter(fate.came for fate in found)
    return {came: counts[came] for came in (KEPT, AGAIN, WITH_NODE, LOST, JUST_KEPT, JUST_LOST)}


def power_table(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """A row for each kind of round."""
    for part in parts.values():
        rounds: Sequence[Mapping[str, Any]] = part["rounds"]
        jobs = {came: sum(one["jobs"][came] for one in rounds) for came in rounds[0]["jobs"]}
        just_taken = jobs[JUST_KEPT] + jobs[JUST_LOST]
        yield (
            part["what"],
            str(len(rounds)),
            span(well) if (well := [one["well"] for one in rounds if one["well"] is not None]) else "never",
            str(sum(jobs.values()) - just_taken),
            *(str(jobs[came]) for came in (KEPT, AGAIN, WITH_NODE, LOST)),
            f"{jobs[JUST_KEPT]}, {just_taken}",
            str(sum(one["changes"] for one in rounds)),
            "; ".join(sorted({hand for one in rounds for hand in one["by_hand"]})) or "nothing",
            str(sum(bool(one["troubles"]) for one in rounds)),
        )

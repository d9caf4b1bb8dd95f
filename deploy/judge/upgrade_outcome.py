"""What an upgrade of Slurm came to, and what became of the jobs that were there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deploy.errors import ExitCode

_HURT = frozenset({"NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "REQUEUED", "PREEMPTED"})
"""States by which Slurm says that it was not the job itself that ended it."""


@dataclass(frozen=True)
class Fate:
    """A job that was there before: its state then and now, and what the upgrade did to it, if anything."""

    job: str
    before: str
    now: str
    trouble: str = ""


@dataclass(frozen=True)
class Outcome:
    """An upgrade to ``wanted``; ``before`` are the versions by host, ``seconds`` what it took.

    ``jobs`` are those of users, ``submitted`` those of the stream of witnesses, ``without_end`` those of them
    that have not the one row of a job that ended well; ``silence`` is for how many seconds nothing could be
    submitted. What was there before is kept in the directory ``backup`` of the hosts ``backup_on``.
    ``unknown``: why nobody knows what became of users' jobs, where it is so.
    """

    wanted: str
    before: Mapping[str, str]
    seconds: float
    is_nothing: bool = False
    backup: str = ""
    backup_on: tuple[str, ...] = ()
    rehearsal: Mapping[str, Any] = field(default_factory=dict)
    done: tuple[str, ...] = ()
    jobs: tuple[Fate, ...] = ()
    unknown: str = ""
    submitted: int = 0
    without_end: tuple[str, ...] = ()
    silence: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def hurt(self) -> tuple[Fate, ...]:
        """The jobs to which something was done."""
        return tuple(fate for fate in self.jobs if fate.trouble)

    @property
    def exit_code(self) -> ExitCode:
        """OK where no job was lost, as far as it could be known."""
        return ExitCode.FAILED if self.hurt or self.without_end or self.unknown else ExitCode.OK


def fates(
    before: Mapping[str, Sequence[Any]],
    now: Mapping[str, Sequence[Any]],
    rows: Mapping[str, Sequence[str]],
) -> Iterator[Fate]:
    """What became of jobs: by id state and restarts before and now, and the states of their rows since.

    A job that is in none of ``now`` and ``rows`` is one of which accounting did not answer.
    """
    for job, (state, restarts) in before.items():
        if job in now:
            later, again = now[job]
            trouble = f"it was started again {again - restarts} times" if again > restarts else ""
            yield Fate(job, state, later, trouble)
            continue
        found = list(rows.get(job, ()))
        if job not in rows:
            yield Fate(job, state, "gone", "it is not in the queue any more, and accounting does not answer")
        elif not found:
            yield Fate(job, state, "gone", "neither Slurm nor accounting knows it any more")
        elif len(found) > 1 or found[-1] in _HURT:
            yield Fate(job, state, found[-1], f"accounting has it as {', '.join(found)}")
        else:
            yield Fate(job, state, found[-1])

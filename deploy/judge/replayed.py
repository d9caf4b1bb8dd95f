"""What another configuration would do to the jobs of the past: which it would refuse, or newly accept."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deploy.errors import ExitCode

_ACCEPTED, _WAITS = "accepted", "waits"


@dataclass(frozen=True)
class Request:
    """What jobs asked for; memory in MiB of all nodes together, ``minutes`` None without a limit."""

    partition: str
    qos: str
    nodes: int
    cpus: int
    memory_mb: int
    gres: tuple[tuple[str, int], ...]
    licenses: tuple[tuple[str, int], ...]
    constraint: str
    minutes: int | None
    tasks: int
    """Of its array; 0 where it is none."""


@dataclass(frozen=True)
class Change:
    """Jobs with which it would go otherwise, and why: Slurm's words."""

    request: Request
    why: str
    waits: bool
    """It is no refusal: a limit would keep them from ever starting. Not asked of what would be accepted."""
    users: Mapping[str, int]
    accounts: Mapping[str, int]

    @property
    def jobs(self) -> int:
        """How many there were."""
        return sum(self.users.values())


@dataclass(frozen=True)
class Replayed:
    """A replay's outcome."""

    days: int
    jobs: int
    """All that were judged."""
    shapes: int
    refused: tuple[Change, ...] = ()
    """What is taken now, and would not be."""
    accepted: tuple[Change, ...] = ()
    """What is not taken now, and would be; ``why`` is why not."""
    never: int = 0
    """Jobs that are taken neither now nor then, as where their partition is gone."""
    gone: Mapping[str, int] = field(default_factory=dict)
    """Jobs of users that the controller does not know any more, by name: nobody could be asked for them."""
    unread: int = 0
    in_reservations: int = 0
    seconds: float = 0.0

    @property
    def exit_code(self) -> ExitCode:
        """As that of a plan."""
        return ExitCode.CHANGES_PENDING if self.refused or self.accepted else ExitCode.OK


def replayed(days: int, gathered: Mapping[str, Any], verdicts: Mapping[str, Any]) -> Replayed:
    """Compares the verdicts on each shape by the configuration that is there with those by the other."""
    shapes: Sequence[Mapping[str, Any]] = gathered["shapes"]
    old: Sequence[Sequence[str]] = verdicts.get("old", ())
    new: Sequence[Sequence[str]] = verdicts.get("new", ())
    rows = list(zip(shapes, old, new, strict=True))
    return Replayed(
        days,
        jobs=sum(shape["jobs"] for shape in shapes),
        shapes=len(shapes),
        refused=_together((s, n) for s, o, n in rows if o[0] == _ACCEPTED != n[0]),
        accepted=_together((s, o) for s, o, n in rows if n[0] == _ACCEPTED != o[0]),
        never=sum(s["jobs"] for s, o, n in rows if _ACCEPTED not in {o[0], n[0]}),
        gone=gathered["gone"],
        unread=gathered["unread"],
        in_reservations=gathered["in_reservations"],
        seconds=float(verdicts.get("seconds", 0)),
    )


def _together(found: Iterable[tuple[Mapping[str, Any], Sequence[str]]]) -> tuple[Change, ...]:
    """The same request with the same answer, of whichever users; those of most jobs first."""
    alike: dict[tuple[Request, str, bool], tuple[Counter[str], Counter[str]]] = {}
    for shape, (verdict, why) in found:
        users, accounts = alike.setdefault((_request(shape), why, verdict == _WAITS), (Counter(), Counter()))
        users[shape["user"]] += shape["jobs"]
        accounts[shape["account"]] += shape["jobs"]
    changes = [
        Change(request, why, waits, dict(users.most_common()), dict(accounts.most_common()))
        for (request, why, waits), (users, accounts) in alike.items()
    ]
    return tuple(sorted(changes, key=lambda change: -change.jobs))


def _request(shape: Mapping[str, Any]) -> Request:
    return Request(
        shape["partition"],
        shape["qos"],
        shape["nodes"],
        shape["cpus"],
        shape["memory_mb"],
        tuple(sorted(shape["gres"].items())),
        tuple(sorted(shape["licenses"].items())),
        shape["constraint"],
        shape["minutes"],
        shape["tasks"],
    )

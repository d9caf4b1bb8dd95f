"""Nodes in batches: how many at once, and the loop that drains, waits, acts, checks and releases.

Whoever acts on nodes (a reboot, an update, an upgrade) gives what to do with one batch; the loop keeps
partitions in service, halts at the first batch that is not good, and says how to go on.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from deploy.engine.database import half_database, is_away, voters, whole_again
from deploy.engine.drains import Ledger, Node, Way, reason
from deploy.errors import DeployError, ExitCode, Finding, error, shown_path
from deploy.site.node_lists import fold

Bad = Mapping[str, str]
"""Nodes that are not as they should be, each with why, in a line."""
Partitions = Mapping[str, Collection[str]]
"""Nodes by the name of their partition; a node may be in several. One that is in none holds nothing up."""

_BESIDE = ""
"""The nodes of no partition count as one of their own; Slurm knows no name that is empty."""
UNTIL = "it is registered with Slurm and its health check passes"
"""What every work with nodes proves before it releases them."""
_SHARE = re.compile(r"(?P<number>[1-9]\d{0,5})(?P<percent>%?)")


@dataclass(frozen=True)
class Share:
    """How much may be out of service at once: a percentage of each partition's nodes, or nodes in all."""

    number: int
    is_percent: bool = False

    def __str__(self) -> str:
        return f"{self.number}{'%' * self.is_percent}"

    def of(self, nodes: int) -> int:
        """How many nodes of a partition with that many may be out of service; one may always be."""
        return max(1, nodes * self.number // 100) if self.is_percent else self.number


def share(text: str, option: str = "--batch") -> Share:
    """``10%`` of each partition, or ``2`` nodes. Raises DeployError ``invalid-option``."""
    match = _SHARE.fullmatch(text.strip())
    if match is None or (match["percent"] and int(match["number"]) > 100):  # noqa: PLR2004 - per cent
        raise error(
            "invalid-option",
            f"{text!r} is neither a number of nodes nor a share of each partition",
            where=option,
            hint=f"{option} 2 for two nodes at once, {option} 10% for a tenth of each partition",
        )
    return Share(int(match["number"]), is_percent=bool(match["percent"]))


def next_batch(
    left: Sequence[str], partitions: Partitions, most: Share, out: Collection[str] = ()
) -> tuple[str, ...]:
    """The nodes of ``left`` that come next, in its order; none where no partition can spare one.

    ``out`` are the nodes that are out of service now. Those of them that are left come first and alone: it
    takes nothing from anybody. A percentage counts whatever is out of a partition, a number only what a batch
    takes.
    """
    most_in_all = None if most.is_percent else most.number
    if idle := tuple(node for node in left if node in out):
        return idle[:most_in_all]
    whole = {name: frozenset(members) for name, members in partitions.items() if most.is_percent}
    room = {name: most.of(len(members)) - len(members & {*out}) for name, members in whole.items()}
    batch: list[str] = []
    for node in left:
        inside = [name for name, members in whole.items() if node in members]
        if all(room[name] > 0 for name in inside) and (most_in_all is None or len(batch) < most_in_all):
            batch.append(node)
            for name in inside:
                room[name] -= 1
    return tuple(batch)


def batches(
    nodes: Sequence[str], partitions: Partitions, most: Share, out: Collection[str] = ()
) -> Iterator[tuple[str, ...]]:
    """The batches that nodes come to, when each is back in service before the next begins.

    They end early where what is ``out`` leaves a partition nothing to spare.
    """
    left, out = [*nodes], {*out}
    while batch := next_batch(left, partitions, most, out):
        yield batch
        left = [node for node in left if node not in batch]
        out -= {*batch}


@dataclass(frozen=True)
class Work:
    """What is done with each batch of nodes, which are drained; ``what`` it is, in a word.

    ``act`` and ``check`` give the nodes that came out bad; with a DeployError from them all of the batch is.
    ``why`` is the reason of the drains. ``again`` is the command that goes on with some nodes.
    ``way`` is how they lose their jobs.
    """

    what: str
    why: str
    act: Callable[[tuple[str, ...]], Bad]
    check: Callable[[tuple[str, ...]], Bad]
    again: Callable[[str], str]
    way: Way = field(default_factory=Way)
    until: Callable[[str], str] = lambda _: UNTIL
    """What must be so before a node is released that came out bad; ``check`` proves it."""
    waits: bool = True
    """Whether that is done when no job is there any more; else they run on."""


@dataclass(frozen=True)
class Course:
    """Where nodes are on their way through a work: done, bad, not begun."""

    done: tuple[str, ...]
    bad: Bad
    left: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(
            [
                *(f"{node} stays drained: {why}" for node, why in self.bad.items()),
                *([f"done: {fold(self.done)}"] if self.done else []),
                *([f"not begun, and as they were: {fold(self.left)}"] if self.left else []),
            ]
        )


class StoppedError(DeployError):
    """A work stopped, there."""

    def __init__(self, course: Course, work: Work, *before: Finding, exit_code: ExitCode) -> None:
        self.course = course
        rest = (*course.bad, *course.left)
        more = f"put {fold(course.bad)} right, then: " if course.bad else ""
        finding = Finding(
            fold(course.bad),
            "batch-stopped",
            f"{work.what} stopped; {course}",
            f"{more}{work.again(fold(rest))}" if rest else work.again(fold(course.done)),
        )
        super().__init__(*before, finding, exit_code=exit_code)


def in_batches(
    ledger: Ledger, nodes: Collection[str], most: Share, work: Work, say: Callable[[str], None]
) -> tuple[Node, ...]:
    """Takes nodes through a work; gives them as they are at the end, some of them maybe held by others.

    Raises DeployError ``no-node-to-spare`` and what the ledger says before anything was drained, and
    StoppedError ``batch-stopped`` at the first batch that is not good: bad nodes stay drained with the
    reason, and what was not begun is as it was.
    """
    left, done = tuple(dict.fromkeys(nodes)), tuple[str, ...]()
    ledger.nodes(left)
    while left:
        try:
            batch = _next(ledger, left, most)
            batch = of_one_vote(ledger, batch) if work.waits else batch
            came = _go_through(ledger, batch, work, say)
        except DeployError as problem:
            if not done and problem.findings[0].reference == "no-node-to-spare":
                raise
            course = Course(done, {}, left)
            raise StoppedError(course, work, *problem.findings, exit_code=problem.exit_code) from None
        left = tuple(node for node in left if node not in batch)
        done += tuple(node for node in batch if node not in came.bad)
        if came.bad:
            course = Course(done, came.bad, left)
            raise StoppedError(course, work, *came.findings, exit_code=came.exit_code)
    return ledger.nodes(done)


def _next(ledger: Ledger, left: tuple[str, ...], most: Share) -> tuple[str, ...]:
    """The next batch, by what is out of service at this moment. Raises DeployError ``no-node-to-spare``."""
    nodes = ledger.nodes()
    partitions: dict[str, set[str]] = {}
    for node in nodes:
        for name in node.partitions or (_BESIDE,):
            partitions.setdefault(name, set()).add(node.name)
    out = {node.name for node in nodes if not node.is_in_service}
    batch = next_batch(left, partitions, most, out)
    if batch:
        return batch
    raise error(
        "no-node-to-spare",
        f"no partition of theirs can spare a node at --batch {most}: out of service are {fold(sorted(out))}",
        where=fold(left),
        hint=f"deploy node list {shown_path(ledger.site.inventory)}; --batch 1 goes on whatever is out",
        exit_code=ExitCode.FAILED,
    )


def of_one_vote(ledger: Ledger, batch: tuple[str, ...]) -> tuple[str, ...]:
    """Of the hosts with a vote on the database the first alone: the others go on without it."""
    votes = [node for node in batch if node in voters(ledger.site)]
    return tuple(node for node in batch if node not in votes[1:])


def going_without(ledger: Ledger, batch: tuple[str, ...]) -> list[str]:
    """Those without which the database goes on meanwhile, and that must have their vote again afterwards.

    Raises DeployError where it could not go on. One that is away already, or is no member yet, costs nothing.
    """
    votes = [node for node in batch if node in voters(ledger.site)]
    found = half_database(ledger.site, ledger.options) if votes else []
    if found and not all(is_away(ledger.site, found, node) for node in votes):
        raise DeployError(*found, exit_code=ExitCode.FAILED)
    return [] if found else votes


def without_vote(ledger: Ledger, nodes: Collection[str]) -> Bad:
    """Those of these that have a vote on the database, where that is not whole again."""
    found = whole_again(ledger.site, ledger.options) if nodes else []
    return dict.fromkeys(nodes, "; ".join(f"{it.where}: {it.message}" for it in found)) if found else {}


@dataclass(frozen=True)
class _Came:
    """What a batch came to: what is bad and stays drained, and with what the work itself ended."""

    bad: Bad
    findings: tuple[Finding, ...] = ()
    exit_code: ExitCode = ExitCode.FAILED


def _go_through(ledger: Ledger, batch: tuple[str, ...], work: Work, say: Callable[[str], None]) -> _Came:
    """Drains a batch, waits, acts, checks, releases what is good.

    Raises DeployError where nothing was done with it, and then it is as it was.
    """
    spared: list[str] = []
    try:
        if work.waits:
            ledger.emptied(batch, work.why, work.way, say)
            spared = going_without(ledger, batch)
        else:
            ledger.drain(batch, work.why)
    except DeployError as problem:
        try:
            ledger.release(batch, work.why)
        except DeployError:
            bad = dict.fromkeys(batch, "nothing was done with it, and the controller does not answer")
            return _Came(bad, problem.findings, problem.exit_code)
        raise
    except BaseException:
        with suppress(DeployError):
            ledger.release(batch, work.why)
        raise
    say(f"{work.what}: {fold(batch)}")
    bad, came = dict[str, str](), _Came({})
    try:
        bad |= work.act(batch)
        bad |= work.check(tuple(node for node in batch if node not in bad))
        bad |= without_vote(ledger, [node for node in spared if node not in bad])
    except DeployError as problem:
        bad = {**dict.fromkeys(batch, problem.findings[0].message), **bad}
        came = _Came(bad, problem.findings)
    except BaseException:
        _hold(ledger, dict.fromkeys(batch, f"{work.what} was interrupted"), work)
        raise
    try:
        _hold(ledger, bad, work)
        if good := [node for node in batch if node not in bad]:
            ledger.release(good, work.why)
    except DeployError as problem:
        late = dict.fromkeys(batch, "done, but the controller does not answer, so it could not be released")
        return _Came({**late, **bad}, (*came.findings, *problem.findings), problem.exit_code)
    return replace(came, bad=bad)


def _hold(ledger: Ledger, bad: Bad, work: Work) -> None:
    """Bad nodes are drained for what is wrong with them, no more for the work."""
    for node, why in bad.items():
        ledger.hold(node, work.why, reason(f"{work.why}: {why}"), work.until(node))

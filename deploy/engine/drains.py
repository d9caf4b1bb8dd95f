"""What ``deploy node drain``, ``resume`` and ``list`` do: the ledger of drains, which controllers have."""

import getpass
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.errors import DeployError, ExitCode, error, shown_path
from deploy.run import drains
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Site
from deploy.site.node_lists import fold

_LONGEST_REASON = 200
_UNITS = {"m": 60, "h": 3600, "d": 86400}
_PERIOD = re.compile(r"(?P<number>[1-9]\d{0,4})(?P<unit>[mhd])")
_POLL_SECONDS = 5.0
_ONCE = frozenset({"lend"})
"""What twice is not as it is once: where it may have been begun, no other controller is asked to do it."""
_MOST_SILENCES = 60
"""How often in a row a controller may leave a question unanswered while jobs are waited for."""
_OUT_OF_SERVICE = frozenset(
    {"DRAIN", "DOWN", "FAIL", "ERROR", "UNKNOWN", "FUTURE", "MAINTENANCE", "NOT_RESPONDING", "INVALID_REG"}
    | {"POWERED_DOWN", "POWERING_DOWN", "REBOOT_ISSUED"}
)


@dataclass(frozen=True)
class Drain:
    """A drain of a node: who made it, why, when (seconds since 1970).

    ``is_foreign``: it was made without deploy, and whoever made it takes it back by himself.
    """

    node: str
    who: str
    why: str
    since: int
    shown: str
    """As Slurm shows it."""
    is_foreign: bool = False
    until: str = ""
    """What must be so before it is released; empty where only its maker knows."""


@dataclass(frozen=True)
class Node:
    """A node as Slurm has it, with all that holds it and the jobs that are there."""

    name: str
    states: tuple[str, ...]
    reason: str
    by: str
    drains: tuple[Drain, ...]
    jobs: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    started: str = ""
    """When its slurmd was started, as Slurm writes it."""
    planned: tuple[Drain, ...] = ()
    """Drains that are to come, each ``since`` its start: reservations keep jobs away that would not end."""

    @property
    def is_in_service(self) -> bool:
        """Whether it takes jobs."""
        return not _OUT_OF_SERVICE & {*self.states}

    @property
    def is_drained(self) -> bool:
        """Whether it takes no new jobs."""
        return "DRAIN" in self.states

    @property
    def held_by_others(self) -> str:
        """Slurm's reason, where it is none of the ledger's; empty where it is, or the node is in service."""
        is_ours = any(drains.is_shown(it.shown, self.reason) for it in self.drains)
        return self.reason if self.is_drained and not is_ours else ""


@dataclass(frozen=True)
class Released:
    """What a resume came to: the drains that were released, the nodes that are back in service."""

    nodes: tuple[Node, ...]
    released: tuple[Drain, ...]
    resumed: frozenset[str]


Agrees = Callable[[], bool]
"""Whether whoever may decide wants to go on although jobs would be lost."""


@dataclass(frozen=True)
class Way:
    """How nodes lose their jobs: at once no new one starts; those that run end, unless ``agrees`` is there.

    ``within``: in so many seconds, and until then jobs start that end by then. ``is_when_idle``: the same,
    from the end of the jobs that are there. ``agrees`` is asked whether jobs may be requeued or cancelled.
    """

    within: int | None = None
    is_when_idle: bool = False
    agrees: Agrees | None = None

    @property
    def is_planned(self) -> bool:
        """Whether a reservation comes before the drain."""
        return self.is_when_idle or self.within is not None

    @property
    def options(self) -> tuple[str, ...]:
        """As it is typed; without ``--yes``, so that who types it again is asked."""
        return (
            *(("--within", _period(self.within)) if self.within is not None else ()),
            *(("--when-idle",) if self.is_when_idle else ()),
            *(("--force",) if self.agrees else ()),
        )


def drain(
    inventory: Path,
    nodes: str,
    why: str,
    options: Options,
    *,
    way: Way,
    say: Callable[[str], None],
    waits: bool,
) -> tuple[Node, ...]:
    """The nodes, drained, or reserved for it; where it ``waits``, drained and without jobs.

    Raises DeployError, and then no node was drained, unless the controller fell silent in between.
    """
    _refuse_reason(why)
    with opened(inventory, options, needs_ansible=False) as run:
        ledger = Ledger(run.site, options)
        names = ledger.names(nodes)
        if waits:
            return ledger.emptied(names, why, way, say)
        return ledger.plan(names, why, way.within) if way.is_planned else ledger.drain(names, why, way, say)


def resume(inventory: Path, nodes: str, options: Options, who: str | None = None) -> Released:
    """Releases the caller's drains, or those of ``who``. Raises DeployError."""
    with opened(inventory, options, needs_ansible=False) as run:
        ledger = Ledger(run.site, options)
        names = ledger.names(nodes)
        found = ledger.ask("resume", names, {"names": names, "who": who or _who()})
    return _released(found, names)


def listed(inventory: Path, options: Options) -> tuple[Node, ...]:
    """All nodes that Slurm has. Raises DeployError."""
    with opened(inventory, options, needs_ansible=False) as run:
        return Ledger(run.site, options).nodes()


@dataclass(frozen=True)
class Ledger:
    """The ledger of a site's cluster, with whichever controller answers: it is the same with all of them."""

    site: Site
    options: Options
    _answered: list[str] = field(default_factory=list, compare=False, repr=False)
    """Who answered last: who does not may take many seconds to be known as silent."""

    def names(self, expression: str) -> list[str]:
        """The nodes of an expression as Slurm writes it. Raises DeployError ``invalid-option``."""
        try:
            names = list(NodeSet(expression, resolver=RESOLVER_NOGROUP))
        except NodeSetException as problem:
            raise _not_nodes(str(problem)) from None
        if not names:
            raise _not_nodes()
        return names

    def nodes(self, names: Collection[str] | None = None) -> tuple[Node, ...]:
        """The nodes of those names, or all that Slurm has. Raises DeployError ``node-not-known-to-slurm``."""
        found = self.ask("listed", (), {})
        if unknown := [name for name in names or () if name not in found["nodes"]]:
            raise self._unknown(unknown, names or ())
        return _nodes(found, found["nodes"] if names is None else names)

    def drain(
        self,
        names: Collection[str],
        why: str,
        way: Way | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> tuple[Node, ...]:
        """Drains nodes for whoever types this; one that was drained so before stays as it is.

        Jobs are ended where the way agrees to that. Raises DeployError ``would-lose-jobs`` where it does not.
        """
        ending = self._agreed(names, way.agrees, say) if way and way.agrees else []
        drained = _nodes(self.ask("drain", names, {"names": [*names], "who": _who(), "why": why}), names)
        if ending:
            done = self.ask("end", names, {"names": [*names], "jobs": ending})
            for what in ("requeued", "cancelled"):
                if done[what]:
                    say(f"{what}: {', '.join(done[what])}")
            return self.nodes(names)
        return drained

    def plan(self, names: Collection[str], why: str, seconds: int | None) -> tuple[Node, ...]:
        """Reserves nodes for a drain in so many seconds, or at the end of their jobs.

        Raises DeployError ``job-without-end``.
        """
        asked = {"names": [*names], "who": _who(), "why": why, "seconds": seconds}
        found = self.ask("plan", names, asked)
        nodes = _nodes(found, names)
        if found.get("endless"):
            jobs = ", ".join(dict.fromkeys(job for node in nodes for job in node.jobs))
            raise error(
                "job-without-end",
                f"nothing was reserved, because a job there has no time limit: {jobs}",
                where=fold(names),
                hint="say when instead: --within 2h; or drain at once, without --when-idle",
            )
        return nodes

    def emptied(
        self, names: Collection[str], why: str, way: Way, say: Callable[[str], None]
    ) -> tuple[Node, ...]:
        """The nodes, drained and without jobs, in the way that is wanted; ``say`` hears what is waited for.

        Raises DeployError ``reservation-gone`` where what was planned was released meanwhile.
        """
        if way.is_planned:
            nodes, told = self.plan(names, why, way.within), False
            while not self._is_time(nodes, why, way):
                if not told:
                    say(f"{fold(names)}: reserved; no job starts there that would end after {_starts(nodes)}")
                    told = True
                time.sleep(_POLL_SECONDS)
                nodes = self.nodes(names)
        return self.without_jobs(self.drain(names, why, way, say), lambda nodes: say(waiting_for(nodes)))

    def _is_time(self, nodes: tuple[Node, ...], why: str, way: Way) -> bool:
        """Whether nodes are to be drained now: they are idle, or their time has come."""
        starts = [each.since for node in nodes for each in node.planned if each.why == why]
        if not starts:
            raise error(
                "reservation-gone",
                "the reservation that keeps jobs away was taken back meanwhile, so nothing was drained",
                where=fold(node.name for node in nodes),
                hint=f"deploy node list {shown_path(self.site.inventory)}; the same again plans anew",
                exit_code=ExitCode.FAILED,
            )
        is_idle = way.is_when_idle and not any(node.jobs for node in nodes)
        return is_idle or min(starts) <= time.time()

    def _agreed(self, names: Collection[str], agrees: Agrees, say: Callable[[str], None]) -> list[str]:
        """The jobs on nodes, when whoever decides has seen them and agreed to their end."""
        jobs = list(dict.fromkeys(job for node in self.nodes(names) for job in node.jobs))
        if not jobs:
            return []
        say(f"would be requeued, or cancelled where that cannot be: {', '.join(jobs)}")
        if not agrees():
            raise error(
                "would-lose-jobs",
                f"nothing was done with {fold(names)}: jobs run there: {', '.join(jobs)}",
                where=fold(names),
                hint="without --force they run to their end; with --force --yes nothing is asked",
                exit_code=ExitCode.CHANGES_PENDING,
            )
        return [job.partition(" ")[0] for job in jobs]

    def hold(self, name: str, why: str, instead: str, until: str) -> None:
        """A node that ``drain`` drained for a reason stays so for another, until the first is released."""
        said = {"names": [name], "who": _who(), "why": why, "instead": instead, "until": until}
        self.ask("hold", [name], said)

    def release(self, names: Collection[str], why: str) -> Released:
        """Releases the drains that ``drain`` made for this reason, and no other."""
        return _released(self.ask("resume", names, {"names": [*names], "who": _who(), "why": why}), names)

    @contextmanager
    def lent(self, names: Collection[str], why: str, user: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """A reservation in which a user alone has jobs, and those of the nodes that are in it meanwhile.

        They are nodes that ``drain`` drained for this reason and nobody else holds; then they are drained for
        it again. What is killed in between leaves the reservation, which keeps jobs away as well.
        """
        found = self.ask("lend", names, {"names": [*names], "who": _who(), "why": why, "user": user})
        try:
            yield found["reservation"], tuple(found["lent"])
        finally:
            if found["lent"]:
                self.drain(found["lent"], why)

    def without_jobs(
        self, nodes: tuple[Node, ...], tell: Callable[[tuple[Node, ...]], None]
    ) -> tuple[Node, ...]:
        """The nodes, when no job is there any more; ``tell`` hears of them while there are some.

        A controller that is silent for a while, as it is while it restarts, ends nothing.
        """
        silences = 0
        while any(node.jobs for node in nodes):
            if not silences:
                tell(nodes)
            time.sleep(_POLL_SECONDS)
            try:
                nodes = self.nodes([node.name for node in nodes])
                silences = 0
            except DeployError as problem:
                silences += 1
                if problem.exit_code is not ExitCode.UNREACHABLE or silences > _MOST_SILENCES:
                    raise
        return nodes

    def ask(self, verb: str, names: Collection[str], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the first controller says that answers; what one began and did not end is done by the next.

        Raises ``controller-silent`` where none does, ``node-not-known-to-slurm`` and ``state-not-saved``.
        """
        silent: dict[str, str] = {}
        for controller in dict.fromkeys([*self._answered, *(host.name for host in self.site.controllers)]):
            asked = {controller: (verb, arguments)}
            answer = ask(asked, self.site.hosts, self.options.login, source="drains")[controller]
            trouble = answer.why if isinstance(answer, Unanswered) else answer.get("trouble")
            if trouble:
                silent[controller] = trouble
                if verb in _ONCE:
                    break
                continue
            self._answered[:] = [controller]
            if answer.get("unknown"):
                raise self._unknown(answer["unknown"], names)
            if answer.get("unsaved"):
                raise self._unsaved(controller, answer["unsaved"])
            return dict(answer)
        raise self._silent(silent)

    def _silent(self, silent: Mapping[str, str]) -> DeployError:
        (first, why), *others = silent.items()
        return error(
            "controller-silent",
            f"it keeps the drains of nodes, and does not answer: {why}"
            + "".join(f"; nor does {name}: {said}" for name, said in others),
            where=first,
            hint=f"deploy status {shown_path(self.site.inventory)}; systemctl status slurmctld (on {first})",
            exit_code=ExitCode.UNREACHABLE,
        )

    def _unsaved(self, controller: str, directory: str) -> DeployError:
        return error(
            "state-not-saved",
            f"Slurm does as told, but has not saved it in {directory}: where slurmctld dies, it is gone",
            where=controller,
            hint=f"df {directory} (on {controller}); journalctl --unit slurmctld; then type the same again",
            exit_code=ExitCode.FAILED,
        )

    def _unknown(self, unknown: Collection[str], names: Collection[str]) -> DeployError:
        return error(
            "node-not-known-to-slurm",
            f"Slurm has no such node, so none of {fold(names)} was changed",
            where=fold(unknown),
            hint=f"deploy node list {shown_path(self.site.inventory)}",
        )


def waiting_for(nodes: tuple[Node, ...]) -> str:
    """What is waited for, in words."""
    jobs = dict.fromkeys(job for node in nodes for job in node.jobs)
    on = fold(node.name for node in nodes if node.jobs)
    return f"waiting for {len(jobs)} job{'s' * (len(jobs) != 1)} on {on}: {', '.join(jobs)}"


def _starts(nodes: tuple[Node, ...]) -> str:
    starts = [each.since for node in nodes for each in node.planned]
    return f"{datetime.fromtimestamp(min(starts)).astimezone():%Y-%m-%d %H:%M}"


def seconds(text: str) -> int:
    """``90m``, ``2h``, ``1d`` in seconds. Raises DeployError ``invalid-option``."""
    match = _PERIOD.fullmatch(text.strip())
    if match is None:
        raise error(
            "invalid-option",
            f"{text!r} is no time from now",
            where="--within",
            hint="minutes, hours or days: --within 90m, --within 2h, --within 1d",
        )
    return int(match["number"]) * _UNITS[match["unit"]]


def _period(count: int) -> str:
    """Seconds as ``seconds`` reads them."""
    unit = next(unit for unit in "dhm" if not count % _UNITS[unit])
    return f"{count // _UNITS[unit]}{unit}"


def reason(text: str) -> str:
    """A text as the reason of a drain: one line, not too long."""
    line = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 4]} ..."


def _refuse_reason(why: str) -> None:
    if why.strip() != why or not why or not why.isprintable() or len(why) > _LONGEST_REASON:
        raise error(
            "invalid-option",
            f"a reason is one line of up to {_LONGEST_REASON} characters, for whoever finds the node drained",
            where="--reason",
            hint="--reason 'replace DIMM A3, ticket 4711'",
        )


def _not_nodes(why: str = "it names none") -> Exception:
    message = f"not a set of node names as Slurm writes it: {why}"
    return error("invalid-option", message, where="NODES", hint="name them as in 'node[1-4],node7'")


def _who() -> str:
    """Who types this: the account behind sudo, where there is one."""
    return os.environ.get("SUDO_USER") or getpass.getuser()


def _nodes(found: Mapping[str, Any], names: Iterable[str]) -> tuple[Node, ...]:
    """The nodes of those names, in their order, by an answer of ``run/drains.py``."""
    jobs: dict[str, list[str]] = {}
    for number, user, folded in found["jobs"]:
        for node in NodeSet(folded, resolver=RESOLVER_NOGROUP):
            jobs.setdefault(node, []).append(f"{number} ({user})")
    held: dict[str, list[Drain]] = {}
    for entry in found["held"]:
        held.setdefault(entry["node"], []).append(_drain(entry))
    planned: dict[str, list[Drain]] = {}
    for entry in found["planned"]:
        for node in entry["nodes"]:
            # By the clock of this machine, as all that is compared with it.
            start = int(time.time()) + int(entry["left"])
            each = Drain(node, entry["who"], entry["why"], start, entry["name"])
            planned.setdefault(node, []).append(each)
    return tuple(
        Node(
            name,
            tuple(said["states"]),
            said["reason"],
            said["by"],
            tuple(held.get(name, ())),
            tuple(jobs.get(name, ())),
            tuple(said["partitions"]),
            said["started"],
            tuple(planned.get(name, ())),
        )
        for name in names
        if (said := found["nodes"].get(name))
    )


def _released(found: Mapping[str, Any], names: Iterable[str]) -> Released:
    entries = tuple(_drain({**entry, "shown": drains.words(entry)}) for entry in found["released"])
    return Released(_nodes(found, names), entries, frozenset(found["resumed"]))


def _drain(entry: Mapping[str, Any]) -> Drain:
    return Drain(
        entry["node"],
        entry["who"],
        entry["why"],
        int(entry["since"]),
        entry["shown"],
        is_foreign=bool(entry.get("is_foreign")),
        until=str(entry.get("until", "")),
    )

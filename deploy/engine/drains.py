"""What ``deploy node drain``, ``resume`` and ``list`` do: the ledger of drains, on a controller."""

import getpass
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from deploy.engine.options import Options
from deploy.engine.run import opened
from deploy.errors import ExitCode, error, shown_path
from deploy.run import drains
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Site
from deploy.site.node_lists import fold

_LONGEST_REASON = 200
_POLL_SECONDS = 5.0


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


@dataclass(frozen=True)
class Node:
    """A node as Slurm has it, with all that holds it and the jobs that are there."""

    name: str
    states: tuple[str, ...]
    reason: str
    by: str
    drains: tuple[Drain, ...]
    jobs: tuple[str, ...]

    @property
    def is_drained(self) -> bool:
        """Whether it takes no new jobs."""
        return "DRAIN" in self.states

    @property
    def held_by_others(self) -> str:
        """Slurm's reason, where it is none of the ledger's; empty where it is, or the node is in service."""
        return self.reason if self.is_drained and self.reason not in {it.shown for it in self.drains} else ""


@dataclass(frozen=True)
class Released:
    """What a resume came to: the drains that were released, the nodes that are back in service."""

    nodes: tuple[Node, ...]
    released: tuple[Drain, ...]
    resumed: frozenset[str]


def drain(
    inventory: Path,
    nodes: str,
    why: str,
    options: Options,
    *,
    tell: Callable[[tuple[Node, ...]], None] | None,
) -> tuple[Node, ...]:
    """The nodes, drained. With ``tell``, waits for their jobs, and reports the nodes while they have some.

    Raises DeployError, and then no node was drained, unless the controller fell silent in between.
    """
    _refuse_reason(why)
    with opened(inventory, options, needs_ansible=False) as run:
        ledger = Ledger(run.site, options)
        names = ledger.names(nodes)
        found = ledger.ask("drain", names, {"names": names, "who": _who(), "why": why})
        drained = _nodes(found, names)
        while tell and any(node.jobs for node in drained):
            tell(drained)
            time.sleep(_POLL_SECONDS)
            drained = _nodes(ledger.ask("listed", (), {}), names)
    return drained


def resume(inventory: Path, nodes: str, options: Options, who: str | None = None) -> Released:
    """Releases the caller's drains, or those of ``who``. Raises DeployError."""
    with opened(inventory, options, needs_ansible=False) as run:
        ledger = Ledger(run.site, options)
        names = ledger.names(nodes)
        found = ledger.ask("resume", names, {"names": names, "who": who or _who()})
    released = tuple(_drain({**entry, "shown": drains.words(entry)}) for entry in found["released"])
    return Released(_nodes(found, names), released, frozenset(found["resumed"]))


def listed(inventory: Path, options: Options) -> tuple[Node, ...]:
    """All nodes that Slurm has. Raises DeployError."""
    with opened(inventory, options, needs_ansible=False) as run:
        found = Ledger(run.site, options).ask("listed", (), {})
    return _nodes(found, found["nodes"])


@dataclass(frozen=True)
class Ledger:
    """The ledger of a site's cluster, on its controller."""

    site: Site
    options: Options

    def names(self, expression: str) -> list[str]:
        """The nodes of an expression as Slurm writes it. Raises DeployError ``invalid-option``."""
        try:
            names = list(NodeSet(expression, resolver=RESOLVER_NOGROUP))
        except NodeSetException as problem:
            raise _not_nodes(str(problem)) from None
        if not names:
            raise _not_nodes()
        return names

    def ask(self, verb: str, names: Collection[str], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the controller answers. Raises DeployError ``controller-silent`` and ``node-not-in-slurm``."""
        controller, inventory = self.site.controller.name, shown_path(self.site.inventory)
        asked = {controller: (verb, arguments)}
        answer = ask(asked, self.site.hosts, self.options.login, source="drains")[controller]
        trouble = answer.why if isinstance(answer, Unanswered) else answer.get("trouble")
        if trouble:
            raise error(
                "controller-silent",
                f"it keeps the drains of nodes, and does not answer: {trouble}",
                where=controller,
                hint=f"deploy status {inventory}; systemctl status slurmctld   (on {controller})",
                exit_code=ExitCode.UNREACHABLE,
            )
        if answer.get("unknown"):
            raise error(
                "node-not-known-to-slurm",
                f"Slurm has no such node, so none of {fold(names)} was changed",
                where=fold(answer["unknown"]),
                hint=f"deploy node list {inventory}",
            )
        return dict(answer)


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
    return tuple(
        Node(
            name,
            tuple(said["states"]),
            said["reason"],
            said["by"],
            tuple(held.get(name, ())),
            tuple(jobs.get(name, ())),
        )
        for name in names
        if (said := found["nodes"].get(name))
    )


def _drain(entry: Mapping[str, Any]) -> Drain:
    return Drain(
        entry["node"],
        entry["who"],
        entry["why"],
        int(entry["since"]),
        entry["shown"],
        is_foreign=bool(entry.get("is_foreign")),
    )

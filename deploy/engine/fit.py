"""Nodes that come back: booted anew, registered with Slurm, well by their own health check."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deploy.engine.drains import Ledger, Node
from deploy.errors import DeployError, ExitCode, error, shown_path
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Host, Site
from deploy.site.node_lists import fold

LIMIT = "reboot_timeout_minutes"
"""How long a machine may take to come back: a variable of the role reboot."""
_POLL_SECONDS = 5.0
_AWAY = frozenset({"DOWN", "NOT_RESPONDING", "UNKNOWN", "FUTURE", "INVALID_REG"})


SILENT = "silent host"
"""The kind of fault of a node that does not answer."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a node: its kind, as its health check has it; of what; in words.

    ``alert`` is the name of the alert that says it; empty where the node itself does.
    """

    kind: str
    subject: str
    words: str
    alert: str = ""


@dataclass(frozen=True)
class Nodes:
    """The nodes of a site, asked one by one and by the ledger's controller."""

    ledger: Ledger
    say: Callable[[str], None]

    @property
    def site(self) -> Site:
        """Whose nodes they are."""
        return self.ledger.site

    def reboot(self, names: Collection[str]) -> dict[str, str]:
        """Reboots nodes, and waits until each has booted; gives those that did not, with why.

        One that does not answer beforehand stays as it is.
        """
        boots: dict[str, str | Unanswered] = self.ask("boot", names)
        bad = {name: f"not rebooted: {it.why}" for name, it in boots.items() if isinstance(it, Unanswered)}
        before = {name: it for name, it in boots.items() if not isinstance(it, Unanswered)}
        for name, said in self.ask("reboot", before).items():
            # A connection that ends before its answer is what a reboot looks like.
            if said and not isinstance(said, Unanswered):
                bad[name] = f"not rebooted: {said}"
        return bad | self._booted({name: it for name, it in before.items() if name not in bad})

    def _booted(self, before: Mapping[str, str]) -> dict[str, str]:
        """Waits until each node is in another boot than ``before``; gives those that are not, with why."""

        def why_not(names: Collection[str]) -> dict[str, str]:
            found: dict[str, str | Unanswered] = self.ask("boot", names)
            return {
                name: f"it does not answer: {boot.why}"
                if isinstance(boot, Unanswered)
                else "it did not reboot"
                for name, boot in found.items()
                if isinstance(boot, Unanswered) or boot == before[name]
            }

        return self.wait("boot", before, why_not)

    def fit(
        self, names: Collection[str], since: Mapping[str, str], *, minutes: int | None = None
    ) -> dict[str, str]:
        """Waits until nodes serve Slurm by another slurmd than ``since``, and are well; the others, with why.

        ``since``: when slurmd was started, as Slurm knew it before. ``minutes`` is for how long, where they
        need no time to boot.
        """

        def why_not(names: Collection[str]) -> dict[str, str]:
            try:
                nodes = {node.name: node for node in self.ledger.nodes(names)}
            except DeployError as problem:
                if problem.exit_code is not ExitCode.UNREACHABLE:
                    raise
                return dict.fromkeys(names, "Slurm's controller does not answer")
            away = {name: why for name in names if (why := _unregistered(nodes[name], since.get(name)))}
            found = self.faults([name for name in names if name not in away])
            return away | {name: "; ".join(it.words for it in said) for name, said in found.items() if said}

        return self.wait("be fit for jobs", names, why_not, minutes=minutes)

    def faults(self, names: Collection[str]) -> dict[str, tuple[Fault, ...]]:
        """What is wrong with each node now, by its own health check; nothing of one that is well."""
        return {
            name: (Fault(SILENT, "", f"it does not answer: {said.why}"),)
            if isinstance(said, Unanswered)
            else tuple(Fault(*fault) for fault in said)
            for name, said in self.ask("faults", names).items()
        }

    def wait(
        self,
        what: str,
        names: Iterable[str],
        why_not: Callable[[Collection[str]], dict[str, str]],
        *,
        minutes: int | None = None,
    ) -> dict[str, str]:
        """Asks ``why_not`` until it names no node any more; those that it names when their time is over."""
        start, late = time.monotonic(), dict[str, str]()
        limits = self.limits(names) if minutes is None else dict.fromkeys(names, minutes)
        waiting, told = [*limits], list[str]()
        while waiting:
            why = why_not(waiting)
            over = (time.monotonic() - start) / 60
            late |= {name: f"{why[name]} (after {limits[name]} min)" for name in why if over >= limits[name]}
            waiting = [name for name in why if name not in late]
            if waiting and waiting != told:
                self.say(f"waiting for {fold(waiting)} to {what}; {waiting[0]}: {why[waiting[0]]}")
                told = waiting
            if waiting:
                time.sleep(_POLL_SECONDS)
        return late

    def limits(self, names: Iterable[str]) -> dict[str, int]:
        """By node how many minutes it may take."""
        hosts = self.site.resolved.hosts
        return {name: int(hosts[name].value(LIMIT)) for name in names}

    @property
    def of_their_own(self) -> tuple[str, ...]:
        """The compute nodes that can be rebooted from here: neither controllers nor where deploy runs."""
        controllers = {host.name for host in self.site.controllers}
        return tuple(
            host.name
            for host in self.site.nodes
            if host.name not in controllers
            and self.site.hosts[host.name].connection.get("ansible_connection") != "local"
        )

    def known(self, names: Collection[str], verb: str) -> dict[str, Host]:
        """The hosts of those nodes. Raises DeployError where one cannot be rebooted or replaced from here."""
        nodes, of_their_own = {host.name for host in self.site.nodes}, self.of_their_own
        for name in names:
            if name not in nodes:
                raise error(
                    "no-such-node",
                    "the inventory has no such compute node, so nothing was begun",
                    where=name,
                    hint=f"deploy node list {shown_path(self.site.inventory)}",
                )
            if name not in of_their_own:
                is_here = self.site.hosts[name].connection.get("ansible_connection") == "local"
                what = "deploy itself runs there" if is_here else "it is the controller, too"
                raise error(
                    "node-not-alone",
                    f"{what}, so it would end what waits for it; nothing was begun",
                    where=name,
                    hint=f"drain it (deploy node drain), wait for its jobs, then {verb} it by hand",
                )
        return {name: self.site.hosts[name] for name in names}

    def ask(self, verb: str, names: Collection[str]) -> dict[str, Any]:
        """What nodes answer to a verb of ``run/on_node.py``, each that or Unanswered."""
        options = self.ledger.options
        return ask({n: (verb, {}) for n in names}, self.site.hosts, options.login, options.forks, "on_node")


def _unregistered(node: Node, since: str | None) -> str:
    if node.started == since:
        return "slurmd there has not registered with Slurm yet"
    away = _AWAY & {*node.states}
    return f"Slurm says that it is {'+'.join(sorted(away)).lower()}" if away else ""

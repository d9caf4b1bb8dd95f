"""What ``deploy update`` does: the distribution's updates, nodes in batches, controllers last."""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deploy.engine.alone import alone
from deploy.engine.batches import Bad, Share, Work, in_batches
from deploy.engine.database import voters, whole_again
from deploy.engine.drains import Ledger
from deploy.engine.fit import Nodes
from deploy.engine.options import Options
from deploy.engine.run import Run, opened
from deploy.errors import DeployError, ExitCode, Finding, shown_path
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.ssh import Unanswered, ask
from deploy.site.inventory import Site
from deploy.site.node_lists import fold

HELD = "bootstrap_attended_packages"
"""What jobs live on is replaced by its own verbs, not with the distribution's updates."""
_WHY = "update of the distribution's packages"
_POLL_SECONDS = 3.0
_MOST_SILENCES = 20
"""How often in a row a host may leave a question unanswered while it installs."""


@dataclass(frozen=True)
class Package:
    """A package of which a newer version waits; ``old`` is empty where it comes anew, as kernels do."""

    name: str
    old: str
    new: str
    security: bool


@dataclass(frozen=True)
class Pending:
    """What waits on a host: updates, those of ``held`` packages that stay, what runs and was replaced."""

    host: str
    packages: tuple[Package, ...]
    held: tuple[Package, ...]
    units: tuple[str, ...]
    reboot: tuple[str, ...]
    unfinished: bool = False
    is_halted: bool = False
    """Whether an update that ended left the node drained."""
    trouble: str = ""
    """Why it cannot say what waits."""

    @property
    def is_due(self) -> bool:
        """Whether there is anything to do, as far as is known."""
        return bool(self.packages or self.units or self.reboot or self.unfinished or self.is_halted)


@dataclass(frozen=True)
class Updated:
    """What became of an update: the hosts in turn, and those that still have to be rebooted, with why.

    ``left_out`` are findings of those that could not say what waits.
    """

    hosts: tuple[str, ...]
    reboot: Mapping[str, tuple[str, ...]]
    left_out: tuple[Finding, ...] = ()


Agrees = Callable[[tuple[Pending, ...]], bool]


def pending(inventory: Path, options: Options, say: Callable[[str], None]) -> tuple[Pending, ...]:
    """What waits on every host, by lists of packages that were just fetched. Installs nothing.

    Raises DeployError ``host-not-updated`` where a host that others need cannot say it.
    """
    with opened(inventory, options, needs_ansible=False) as run:
        return _Hosts(run, say).pending()


def update(
    inventory: Path, options: Options, agrees: Agrees, *, most: Share, say: Callable[[str], None]
) -> Updated:
    """Installs what waits; no hosts where there is nothing to do, or it was not agreed to.

    Compute nodes are drained in batches and rebooted where they must be. Other hosts, and nodes that are
    servers or have deploy on them, are updated one by one, controllers last; what of them must be rebooted is
    told, for whoever knows when. A host that cannot say what waits is left out, unless others need it.

    Raises DeployError before anything changes, and ``batch-stopped`` or ``update-stopped`` at the first hosts
    that are not well afterwards.
    """
    with (
        opened(inventory, options, needs_ansible=False) as run,
        site_lock(state_directory(run.site.directory)),
    ):
        hosts = _Hosts(run, say)
        with _alone(run, say):
            slurm = {node.name: node for node in hosts.ledger.nodes()}
            halted = {n for n, node in slurm.items() if any(it.why.startswith(_WHY) for it in node.drains)}
            found = [replace(it, is_halted=it.host in halted) for it in hosts.pending()]
            left_out = hosts.findings(found)
            waiting = tuple(it for it in found if it.is_due or it.trouble)
            due = [it.host for it in waiting if not it.trouble]
            if not due or not agrees(waiting):
                return Updated((), {}, left_out)
            own = Nodes(hosts.ledger, say).of_their_own
            last = _last(run.site)
            nodes = [name for name in own if name in due and name in slurm and name not in last]
            hosts.nodes_in_batches(nodes, most)
            for name in _others(run.site, due, nodes):
                hosts.one(name)
            left = {it.host: it.reboot for it in hosts.look(due) if it.reboot}
    return Updated(tuple(due), left, left_out)


@contextmanager
def _alone(run: Run, say: Callable[[str], None]) -> Iterator[None]:
    with alone(run, lambda event: say(str(getattr(event, "message", event))), is_needed=True):
        yield


def _last(site: Site) -> dict[str, None]:
    """Whom the others need, compute nodes among them, in the order in which they are updated one by one."""
    hosts = (*site.database_members, *site.accounting_hosts, *site.controllers)
    return dict.fromkeys(host.name for host in hosts)


def _others(site: Site, due: Collection[str], nodes: Collection[str]) -> Iterator[str]:
    """Hosts that do not go in batches, controllers and databases last."""
    last = _last(site)
    yield from (h.name for h in site.cluster if h.name in due and h.name not in nodes and h.name not in last)
    yield from (name for name in last if name in due and name not in nodes)


@dataclass(frozen=True)
class _Hosts:
    """The hosts of a run, asked and worked on over plain ssh."""

    run: Run
    say: Callable[[str], None]

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.run.site, self.run.options)

    def pending(self) -> tuple[Pending, ...]:
        """Raises DeployError ``host-not-updated`` where a host that others need cannot say what waits."""
        replace(self.run, say=self.say).those_on([*self.run.away], "update")
        names = [name for name in self.run.hosts if name in self.run.site.hosts]
        self.say(f"fetching the lists of packages on {fold(names)}")
        trouble = self._done("refresh", names)
        found = self._seen(name for name in names if name not in trouble)
        found += [_unknown(name, why) for name, why in trouble.items()]
        needed = _last(self.run.site)
        self._refuse(it for it in found if it.host in needed)
        return tuple(found)

    def look(self, names: Iterable[str]) -> tuple[Pending, ...]:
        """What waits on hosts, by the lists of packages that they have."""
        found = self._seen(names)
        self._refuse(found)
        return tuple(found)

    def _seen(self, names: Iterable[str]) -> list[Pending]:
        answers = self._ask({name: ("look", {}) for name in names})
        return [
            _unknown(name, said.why) if isinstance(said, Unanswered) else _pending(name, said)
            for name, said in answers.items()
        ]

    def nodes_in_batches(self, names: Collection[str], most: Share) -> None:
        """Compute nodes: drained, waited for, updated, rebooted where needed, checked, released."""
        if not names:
            return
        nodes, started = Nodes(self.ledger, self.say), dict[str, str]()

        def act(batch: tuple[str, ...]) -> Bad:
            before = {node.name: node.started for node in self.ledger.nodes(batch)}
            bad, reboot = self.install(batch)
            started.clear()
            started.update({name: before[name] for name in reboot})
            if reboot:
                self.say(f"reboot: {fold(reboot)}")
            return bad | nodes.reboot(reboot)

        def check(batch: tuple[str, ...]) -> Bad:
            bad = nodes.fit(batch, started)
            return bad | self._still(name for name in batch if name not in bad)

        again = f"deploy update {shown_path(self.run.site.inventory)}"
        in_batches(self.ledger, names, most, Work("update", _WHY, act, check, lambda _: again), self.say)

    def install(self, names: Collection[str]) -> tuple[dict[str, str], list[str]]:
        """Installs what waits and restarts what is stale; the hosts that are bad, and those to reboot."""
        bad = self._done("install", names)
        after = {it.host: it for it in self.look([name for name in names if name not in bad])}
        reboot = [name for name, it in after.items() if it.reboot]
        stale = {name: ("restart", {"units": it.units}) for name, it in after.items() if it.units}
        for name, answer in self._ask(stale).items():
            if isinstance(answer, Unanswered):
                bad[name] = f"it does not answer: {answer.why}"
            elif answer:
                bad[name] = "; ".join(f"{unit}: {why}" for unit, why in answer.items())
        return bad, [name for name in reboot if name not in bad]

    def one(self, name: str) -> None:
        """A host that goes alone. Raises DeployError ``update-stopped``."""
        self.say(f"update: {name}")
        if trouble := self._half_database(name):
            raise self._stopped(name, f"it was not begun, and nothing that comes after it: {trouble}")
        bad, _ = self.install([name])
        if not bad and name in {host.name for host in self.run.site.controllers}:
            bad = self._silent_controller(name)
        if not bad and (trouble := self._half_database(name)):
            bad = {name: trouble}
        if bad:
            raise self._stopped(
                name, f"it is not well after its update, and what comes after it was not begun: {bad[name]}"
            )

    def _stopped(self, name: str, why: str) -> DeployError:
        again = f"deploy update {shown_path(self.run.site.inventory)}"
        finding = Finding(name, "update-stopped", why, f"put it right, then the same again: {again}")
        return DeployError(finding, exit_code=ExitCode.FAILED)

    def _half_database(self, name: str) -> str:
        """Of who has a vote on the database: what keeps one from going on without another."""
        site = self.run.site
        found = whole_again(site, self.run.options) if name in voters(site) else []
        return "; ".join(f"{finding.where}: {finding.message}" for finding in found)

    def _silent_controller(self, name: str) -> dict[str, str]:
        """A slurmctld may take a while to read its state."""
        trouble = "Slurm does not answer"
        for _ in range(_MOST_SILENCES):
            try:
                self.ledger.nodes()
            except DeployError as problem:
                trouble = problem.findings[0].message
                time.sleep(_POLL_SECONDS)
            else:
                return {}
        return {name: trouble}

    def _still(self, names: Iterable[str]) -> dict[str, str]:
        """Nodes that must be rebooted even now."""
        found = self.look(names)
        return {it.host: f"after its reboot, still: {'; '.join(it.reboot)}" for it in found if it.reboot}

    def _done(self, action: str, names: Collection[str]) -> dict[str, str]:
        """Starts an action of apt's on hosts and waits for its end; those where it failed, with why."""
        bad: dict[str, str] = {}
        silent = dict.fromkeys(names, 0)
        verbs = {name: ("start", {"action": action, "held": self._held(name)}) for name in names}
        waiting = [*names]
        while waiting:
            answers = self._ask({name: verbs[name] for name in waiting})
            for name, said in answers.items():
                if isinstance(said, Unanswered):
                    silent[name] += 1
                    if said.is_by_choice or silent[name] > _MOST_SILENCES or verbs[name][0] == "start":
                        bad[name] = f"it does not answer: {said.why}"
                    continue
                silent[name] = 0
                verbs[name] = ("state", {"action": action})
                if said["trouble"]:
                    bad[name] = said["trouble"]
            runs = {name for name, said in answers.items() if isinstance(said, Unanswered) or said["runs"]}
            waiting = [name for name in waiting if name in runs and name not in bad]
            if waiting:
                time.sleep(_POLL_SECONDS)
        self._ask({name: ("finish", {"action": action}) for name in names if name not in bad})
        return bad

    def _held(self, name: str) -> str:
        """A pattern for the names of packages that stay as they are, as apt_preferences(5) takes it."""
        patterns = self.run.site.resolved.hosts[name].value(HELD)
        return f"^({'|'.join(map(re.escape, map(str, patterns)))})" if patterns else "^$"

    def _ask(self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
        options = self.run.options
        return ask(questions, self.run.site.hosts, options.login, options.forks, "updates")

    def _refuse(self, found: Iterable[Pending]) -> None:
        if refused := self.findings(found):
            raise DeployError(*refused, exit_code=ExitCode.UNREACHABLE)

    def findings(self, found: Iterable[Pending]) -> tuple[Finding, ...]:
        """Of hosts that cannot say what waits."""
        hint = f"deploy check {shown_path(self.run.site.inventory)}; apt-get update   (there)"
        return tuple(
            Finding(it.host, "host-not-updated", f"it cannot say what waits: {it.trouble}", hint)
            for it in found
            if it.trouble
        )


def _unknown(name: str, trouble: str) -> Pending:
    return Pending(name, (), (), (), (), trouble=trouble)


def _pending(name: str, answer: Mapping[str, Any]) -> Pending:
    stale = answer["stale"]
    return Pending(
        name,
        tuple(Package(**entry) for entry in answer["updates"]),
        tuple(Package(**entry) for entry in answer["held"]),
        tuple(stale["units"]),
        tuple(stale["reboot"]),
        unfinished=answer["unfinished"],
    )

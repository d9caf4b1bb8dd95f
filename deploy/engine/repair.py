"""What ``deploy node repair`` does: one remedy after the other, until a node is fit for jobs."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from deploy.engine.alone import alone
from deploy.engine.batches import Bad, Share, StoppedError, Work, in_batches
from deploy.engine.cluster import deploy_cluster
from deploy.engine.consent import Agrees
from deploy.engine.display import Display
from deploy.engine.dossier import Case, write_dossier
from deploy.engine.drains import Ledger, Node, Way
from deploy.engine.fit import Fault, Nodes
from deploy.engine.options import Options
from deploy.engine.remedies import CONVERGE, LOOK, REBOOT, STUCK, Remedy, next_remedy
from deploy.engine.run import opened
from deploy.errors import DeployError, ExitCode, shown_path
from deploy.run.drains import is_by_health_check, is_by_slurm
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.ssh import Unanswered, ask
from deploy.site.node_lists import fold

WHY = "repair"
_POLL_SECONDS = 3.0
_EFFECT_SECONDS = 15.0
"""How long a remedy has until it is judged: a service starts, a clock finds its servers."""


@dataclass(frozen=True)
class Asked:
    """What was typed; ``agrees`` is asked where a run of a node would lose jobs elsewhere.

    ``budget``: by itself, so many nodes at most, no remedy twice a day on a node, and no job is waited for.
    """

    way: Way
    agrees: Agrees
    budget: Share | None = None


@dataclass(frozen=True)
class Repaired:
    """What a repair came to: nodes that are fit again, that were so before, that are left to another turn."""

    repaired: tuple[Node, ...] = ()
    well: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def repair(
    inventory: Path,
    nodes: str | None,
    asked: Asked,
    options: Options,
    *,
    display: Display,
    say: Callable[[str], None],
) -> Repaired:
    """Repairs nodes, or all that are out of service for a fault of theirs.

    Raises DeployError before anything was done, and StoppedError where nodes stay drained; each of those has
    a dossier then.
    """
    with opened(inventory, options, needs_ansible=False) as run:
        ledger = Ledger(run.site, options)
        turn = _Turn(inventory, Nodes(ledger, say), asked, options, display, say)
        names = ledger.names(nodes) if nodes else turn.all()
        turn.nodes.known(names, "repair")
        # A run that is at work there would be cut off. One that begins later is its admin's affair.
        with alone(run, lambda _: None, is_needed=True):
            pass
    with site_lock(state_directory(run.site.directory), "repair.lock"):
        faults = turn.faults(names)
        before = {it.name: it for it in ledger.nodes(names)}
        ill = [name for name in names if faults[name] or _is_ours(before[name])]
        if asked.budget:
            ill, left = turn.within_budget(ill, faults, asked.budget.of(len(ledger.nodes())))
        else:
            left = ()
        well = tuple(name for name in names if not faults[name] and name not in ill)
        repaired = turn.fix(ill) if ill else ()
        turn.settle(well)
        return Repaired(repaired, well, left)


def _is_ours(node: Node) -> bool:
    """Whether a repair that ended without success holds a node."""
    return any(each.why.partition(":")[0] == WHY for each in node.drains)


def _is_for_us(node: Node) -> bool:
    """Whether a node is out of service for what it is itself, and for nobody's decision."""
    others = [each for each in node.drains if not each.is_foreign and each.why.partition(":")[0] != WHY]
    is_sick = is_by_health_check(node.held_by_others) or is_by_slurm(node.held_by_others)
    is_away = {"DOWN", "NOT_RESPONDING"} & {*node.states} and not node.is_drained
    return not others and (is_sick or _is_ours(node) or bool(is_away))


@dataclass
class _Turn:
    """One repair: what was tried on which node."""

    inventory: Path
    nodes: Nodes
    asked: Asked
    options: Options
    display: Display
    say: Callable[[str], None]
    tried: dict[str, dict[Remedy, str]] = field(default_factory=dict)
    """By node what was tried, and what it came to; what is from before says so."""
    seen: dict[str, tuple[Fault, ...]] = field(default_factory=dict)
    """By node what was wrong when it began."""

    @property
    def ledger(self) -> Ledger:
        return self.nodes.ledger

    def all(self) -> list[str]:
        """The nodes that are out of service for a fault; one that left the inventory is nobody's."""
        ours = self.nodes.of_their_own
        return [node.name for node in self.ledger.nodes() if node.name in ours and _is_for_us(node)]

    def faults(self, names: Collection[str]) -> dict[str, tuple[Fault, ...]]:
        """What is wrong with nodes: by their health checks, and what Slurm drained them for."""
        found = self.nodes.faults(names)
        for node in self.ledger.nodes(names):
            done = {remedy.name for remedy, came in self.tried.get(node.name, {}).items() if not came}
            if is_by_slurm(node.held_by_others) and not done & {LOOK, REBOOT}:
                words = f"Slurm drained it: {node.held_by_others}"
                found[node.name] = (*found[node.name], Fault(STUCK, "", words))
        return found

    def within_budget(
        self, ill: list[str], faults: Mapping[str, tuple[Fault, ...]], most: int
    ) -> tuple[list[str], tuple[str, ...]]:
        """The nodes whose turn it is, and those that are left: to the next turn, or to somebody's hands."""
        for entry in self.ledger.ask("remedies", (), {})["remedies"]:
            name, _, subject = entry["remedy"].partition(" ")
            self.tried.setdefault(entry["node"], {})[Remedy(name, subject)] = "tried within a day"
        hopeless = [n for n in ill if faults[n] and not next_remedy(faults[n], self.tried.get(n, {}))]
        if hopeless:
            self.say(f"nothing is left to try today: {fold(hopeless)}")
        hopeful = [name for name in ill if name not in hopeless]
        if len(hopeful) > most:
            self.say(
                f"{len(hopeful)} nodes at once are more than {most}; the next turn: {fold(hopeful[most:])}"
            )
        return hopeful[:most], (*hopeless, *hopeful[most:])

    def fix(self, names: Collection[str]) -> tuple[Node, ...]:
        """Nodes, drained, fixed, proven and released. Raises StoppedError."""
        again = f"deploy node repair {shown_path(self.inventory)}"
        work = Work(
            WHY,
            WHY,
            self._act,
            lambda batch: self.nodes.fit(batch, {}),
            lambda rest: f"{again} {rest}",
            waits=False,
        )
        # All of them are out of service before the first is worked on, and so are one batch.
        self.ledger.drain(names, WHY)
        try:
            in_batches(self.ledger, names, Share(len(names)), work, self.say)
        except StoppedError as problem:
            for name, why in problem.course.bad.items():
                self._dossier(name, why)
            self.settle(problem.course.done)
            raise
        return self.settle(names)

    def settle(self, names: Collection[str]) -> tuple[Node, ...]:
        """Has what drained nodes for their faults let go of them now that they have none."""
        if not names:
            return ()
        self.ledger.ask("resume_of_slurm", names, {"names": [*names]})
        held = [it.name for it in self.ledger.nodes(names) if is_by_health_check(it.held_by_others)]
        self.nodes.ask("settle", held)
        return self.ledger.nodes(names)

    def _act(self, batch: tuple[str, ...]) -> Bad:
        faults = self.seen = self.faults(batch)
        late: dict[str, str] = {}
        while True:
            ill = [name for name in batch if faults[name] and name not in late]
            steps = {name: self._step(name, faults[name]) for name in ill}
            todo = {name: remedy for name, remedy in steps.items() if remedy}
            if gentle := {name: remedy for name, remedy in todo.items() if remedy.spares_jobs}:
                todo = gentle
            elif self.asked.budget:
                late |= self._busy(todo)
                todo = {name: remedy for name, remedy in todo.items() if name not in late}
            elif todo:
                self.ledger.emptied([*todo], WHY, self.asked.way, self.say)
            if not todo:
                return {name: _words(faults[name]) for name in ill} | late
            self._try(todo)
            faults = {**faults, **self._judged([*todo])}

    def _step(self, name: str, faults: Iterable[Fault]) -> Remedy | None:
        return next_remedy(faults, self.tried.get(name, {}))

    def _busy(self, todo: Mapping[str, Remedy]) -> dict[str, str]:
        """Nodes with jobs, which wait for another turn."""
        jobs = {node.name: node.jobs for node in self.ledger.nodes([*todo])}
        return {
            name: f"{remedy} waits for the end of {', '.join(jobs[name])}"
            for name, remedy in todo.items()
            if jobs[name]
        }

    def _try(self, todo: Mapping[str, Remedy]) -> None:
        """One remedy on each of some nodes."""
        for name, remedy in todo.items():
            # Noted before it is done: what takes the node away shall not be done again and again.
            said = {"node": name, "remedy": f"{remedy.name} {remedy.subject}".strip()}
            self.ledger.ask("remedies", [name], said)
            self.tried.setdefault(name, {})[remedy] = "was begun"
        together = [name for name, remedy in todo.items() if remedy.name == REBOOT]
        if together:
            self.say(f"{fold(together)}: reboot")
        came = self.nodes.reboot(together) if together else {}
        for name, remedy in todo.items():
            if remedy.name != REBOOT:
                came[name] = self._apply(name, remedy)
            self.tried[name][remedy] = came.get(name, "")
            self.say(f"{name}: {remedy}: {came.get(name) or 'done'}")

    def _apply(self, name: str, remedy: Remedy) -> str:
        """Nothing, or why a remedy did not succeed."""
        if remedy.name == CONVERGE:
            options = replace(self.options, limit=name)
            try:
                summary = deploy_cluster(self.inventory, options, self.display, self.asked.agrees, self.say)
            except DeployError as problem:
                return problem.findings[0].message
            return "" if summary.exit_code is ExitCode.OK else "it did not converge: see deploy report"
        is_look = remedy.name == LOOK
        question = ("leftovers", {}) if is_look else (remedy.name, {"subject": remedy.subject})
        answer = ask({name: question}, self.nodes.site.hosts, self.options.login, source="remedies")[name]
        return f"it does not answer: {answer.why}" if isinstance(answer, Unanswered) else str(answer)

    def _judged(self, names: Collection[str]) -> dict[str, tuple[Fault, ...]]:
        """What is wrong with nodes a moment after a remedy; its effect is waited for."""
        deadline = time.monotonic() + _EFFECT_SECONDS
        while any((found := self.faults(names)).values()) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return found

    def _dossier(self, name: str, why: str) -> None:
        tried = {str(remedy): came or "done" for remedy, came in self.tried.get(name, {}).items()}
        seen = [fault.words for fault in self.seen.get(name, ())]
        path = write_dossier(self.nodes.site, self.options, Case(name, why, seen, tried))
        self.say(f"{name}: dossier: {shown_path(path)}")


def _words(faults: Iterable[Fault]) -> str:
    return "; ".join(fault.words for fault in faults)

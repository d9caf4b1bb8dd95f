"""What ``deploy node repair`` does: one remedy after the other, until a node is fit for jobs."""

import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from deploy.engine import alerts
from deploy.engine.alerts import Alerts
from deploy.engine.alone import alone, nodes_on
from deploy.engine.batches import (
    UNTIL,
    Bad,
    Share,
    StoppedError,
    Work,
    going_without,
    in_batches,
    of_one_vote,
    without_vote,
)
from deploy.engine.cluster import deploy_cluster
from deploy.engine.consent import Agrees
from deploy.engine.database import voters
from deploy.engine.display import Display
from deploy.engine.dossier import Case, write_dossier
from deploy.engine.drains import Ledger, Node, Way, reason
from deploy.engine.fit import Fault, Nodes
from deploy.engine.options import Options
from deploy.engine.proving import by_jobs
from deploy.engine.remedies import CONVERGE, LOOK, REBOOT, STUCK, Remedy, next_remedy, remedies
from deploy.engine.run import Run, opened
from deploy.engine.validation import failing_checks
from deploy.errors import DeployError, ExitCode, shown_path
from deploy.run.drains import is_by_health_check, is_by_slurm
from deploy.run.journal import state_directory
from deploy.run.lock import site_lock
from deploy.run.ssh import Unanswered, ask
from deploy.site.node_lists import fold

WHY = "repair"
_UNKNOWN = "alert"
"""The kind of fault of a node that is held for an alert while nobody knows whether that still fires."""
_POLL_SECONDS = 3.0
_EFFECT_SECONDS = 15.0
_REMEDY_SECONDS, _HEAVY_SECONDS = 60, 600
"""Before a GPU is reset daemons stop; those that start then set up all GPUs of the node."""
"""How long a remedy has until it is judged: a service starts, a clock finds its servers."""
_LOOKS_BACK = 3600
"""Alerts on what happened look back an hour; so long one may fire although a remedy helped."""
_ALERT_SECONDS, _QUIET_SECONDS, _LOOK_SECONDS = 180.0, 60.0, 10.0
"""How long an alert may take to see the effect of a remedy, and how long it must be quiet to be believed."""
_PROOF_SECONDS, _PROOF_PAUSE = 120.0, 10.0
"""How long a node may take until it passes its checks: what it booted with is not all there at once."""
_PROVEN = ", and so do its checks and jobs of deploy validate"
_QUIET = ", and these alerts are quiet: "


@dataclass(frozen=True)
class Asked:
    """What was typed; ``agrees`` is asked where a run of a node would lose jobs elsewhere.

    ``budget``: by itself, so many nodes at most, no remedy twice a day on a node, and no job is waited for.
    ``burn_in_hours``: for so long nodes are under load before they are released.
    """

    way: Way
    agrees: Agrees
    budget: Share | None = None
    burn_in_hours: float = 0.0


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
        turn = _Turn(run, inventory, Nodes(ledger, say), asked, options, display, say)
        turn.look()
        names = ledger.names(nodes) if nodes else turn.all()
        turn.nodes.known(names, "repair")
        # A run that is at work there would be cut off. One that begins later is its admin's affair.
        with alone(run, lambda _: None, is_needed=True):
            pass
        with site_lock(state_directory(run.site.directory), "repair.lock"), nodes_on(run):
            faults = turn.faults(names)
            before = {it.name: it for it in ledger.nodes(names)}
            ill = [name for name in names if faults[name] or _is_ours(before[name])]
            if asked.budget:
                ill, left = turn.within_budget([before[name] for name in ill], faults, asked.budget)
            else:
                left = ()
            well = tuple(name for name in names if not faults[name] and name not in ill)
            repaired = turn.fix([before[name] for name in ill], faults) if ill else ()
            turn.settle(well)
            return Repaired(repaired, well, left)


def _is_ours(node: Node) -> bool:
    """Whether a repair holds a node that ended without success, or was cut off while jobs proved the node."""
    held = (*node.drains, *(each for each in node.planned if each.since <= time.time()))
    return any(each.why.partition(":")[0] == WHY for each in held)


def _alerts_of(node: Node) -> tuple[str, ...]:
    """The alerts for which a repair holds a node, until they are quiet."""
    ends = (each.until.partition(_QUIET)[2] for each in node.drains)
    return tuple(name for until in ends if until for name in until.split(", "))


def _is_for_us(node: Node) -> bool:
    """Whether a node is out of service for what it is itself, and for nobody's decision."""
    others = [each for each in node.drains if not each.is_foreign and each.why.partition(":")[0] != WHY]
    is_sick = is_by_health_check(node.held_by_others) or is_by_slurm(node.held_by_others)
    is_away = {"DOWN", "NOT_RESPONDING"} & {*node.states} and not node.is_drained
    return not others and (is_sick or _is_ours(node) or bool(is_away))


@dataclass
class _Turn:
    """One repair: what was tried on which node."""

    run: Run
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
    alerts: Alerts = field(default_factory=Alerts)
    """What the monitoring said when it began."""
    alarming: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By node the names of the alerts that must be quiet before it is released."""
    doubted: set[str] = field(default_factory=set)
    """The nodes that must prove more than their health: what was done to them, or was wrong, was grave."""
    answered: set[tuple[str, Fault]] = field(default_factory=set)
    """Nodes with what alerts said of them, to which a remedy was the answer; the alert hears of it later."""

    @property
    def ledger(self) -> Ledger:
        return self.nodes.ledger

    def look(self) -> None:
        """Asks the monitoring; where it does not say anything, the rest goes on."""
        self.alerts = alerts.look(self.run)
        if self.alerts.why:
            self.say(f"alerts are not looked at: {self.alerts.why}")

    def all(self) -> list[str]:
        """The nodes that are out of service for a fault, and those in service that alerts call unfit.

        One that left the inventory is nobody's.
        """
        ours, unfit = self.nodes.of_their_own, self.alerts.firing
        return [
            node.name
            for node in self.ledger.nodes()
            if node.name in ours and (_is_for_us(node) or (node.is_in_service and node.name in unfit))
        ]

    def faults(self, names: Collection[str]) -> dict[str, tuple[Fault, ...]]:
        """What is wrong with nodes: by their health checks, what Slurm drained them for, by alerts."""
        found = self.nodes.faults(names)
        for node in self.ledger.nodes(names):
            done = {remedy.name for remedy, came in self.tried.get(node.name, {}).items() if not came}
            if is_by_slurm(node.held_by_others) and not done & {LOOK, REBOOT}:
                words = f"Slurm drained it: {node.held_by_others}"
                found[node.name] = (*found[node.name], Fault(STUCK, "", words))
            found[node.name] = (*found[node.name], *self._alarms(node))
        return found

    def _alarms(self, node: Node) -> tuple[Fault, ...]:
        """What alerts say of a node that no remedy was the answer to."""
        firing, held = self.alerts.firing.get(node.name, ()), _alerts_of(node)
        names = tuple(dict.fromkeys([*held, *(fault.alert for fault in firing)]))
        if names:
            self.alarming[node.name] = names
            self.doubted.add(node.name)
        if held and self.alerts.why:
            return (Fault(_UNKNOWN, "", self.alerts.against(node.name, held), held[0]),)
        return tuple(fault for fault in firing if (node.name, fault) not in self.answered)

    def within_budget(
        self, ill: Collection[Node], faults: Mapping[str, tuple[Fault, ...]], budget: Share
    ) -> tuple[list[str], tuple[str, ...]]:
        """The nodes whose turn it is, and those that are left: to the next turn, or to somebody's hands."""
        recent = set()
        for entry in self.ledger.ask("remedies", (), {})["remedies"]:
            name, _, subject = entry["remedy"].partition(" ")
            self.tried.setdefault(entry["node"], {})[Remedy(name, subject)] = "tried within a day"
            recent |= {entry["node"]} if entry["ago"] < _LOOKS_BACK else set()
        # One in service that is not fit is drained at least.
        out = [node.name for node in ill if not node.is_in_service]
        early = [n for n in out if n in recent and faults[n] and all(it.alert for it in faults[n])]
        if early:
            self.say(f"its alert is to become quiet first: {fold(early)}")
        out = [name for name in out if name not in early]
        hopeless = [n for n in out if faults[n] and not self._step(n, faults[n])]
        if hopeless:
            self.say(f"nothing is left to try today: {fold(hopeless)}")
        hopeful = [name for name in out if name not in hopeless]
        everybody = self.ledger.nodes()
        most = budget.of(len(everybody))
        if len(hopeful) > most:
            self.say(
                f"{len(hopeful)} nodes at once are more than {most}; the next turn: {fold(hopeful[most:])}"
            )
        taken = hopeful[:most]
        # What was taken in earlier turns counts: alerts that are wrong themselves would empty the cluster.
        gone = {*taken, *(node.name for node in everybody if _is_ours(node))}
        serving = [node.name for node in ill if node.is_in_service]
        room = max(0, most - len(gone))
        if serving[room:]:
            self.say(
                f"{fold(serving[room:])}: not taken, although not fit: repairs have {len(gone) + room} nodes "
                f"out of service, and {most} is the most"
            )
        return [*taken, *serving[:room]], (*early, *hopeless, *hopeful[most:], *serving[room:])

    def fix(self, nodes: Collection[Node], faults: Mapping[str, tuple[Fault, ...]]) -> tuple[Node, ...]:
        """Nodes, drained, fixed, proven and released. Raises StoppedError."""
        names = [node.name for node in nodes]
        # One that a repair holds came from a remedy, or from somebody's hands.
        self.doubted |= {node.name for node in nodes if _is_ours(node)}
        hours = self.asked.burn_in_hours
        more = (*(("--burn-in", f"{hours:g}") if hours else ()), *self.asked.way.options)
        work = Work(
            WHY,
            WHY,
            self._act,
            self._check,
            lambda rest: f"deploy node repair {shown_path(self.inventory)} {shlex.join([rest, *more])}",
            until=self._until,
            waits=False,
        )
        # All of them are out of service before the first is worked on, and so are one batch.
        self.ledger.drain(names, WHY)
        for name in names:
            # Whoever finds it drained while its jobs end is told why.
            if said := [fault for fault in faults[name] if fault.alert]:
                self.ledger.hold(name, WHY, reason(f"{WHY}: {_words(said)}"), self._until(name))
        try:
            in_batches(self.ledger, names, Share(len(names)), work, self.say)
        except StoppedError as problem:
            for name, why in problem.course.bad.items():
                self._dossier(name, why)
            self.settle(problem.course.done)
            raise
        return self.settle(names)

    def _until(self, name: str) -> str:
        names = self.alarming.get(name, ())
        return UNTIL + _PROVEN * (name in self.doubted) + (_QUIET + ", ".join(names) if names else "")

    def _check(self, batch: tuple[str, ...]) -> Bad:
        """Nodes that do not serve Slurm again, are not well, fail a check, or have an alert against them."""
        bad = self.nodes.fit(batch, {})
        doubted = [name for name in batch if name in self.doubted or self.asked.burn_in_hours]
        bad |= self._unproven([name for name in doubted if name not in bad])
        bad |= self._by_jobs([name for name in doubted if name not in bad])
        return bad | self._loud([name for name in batch if name not in bad and name in self.alarming])

    def _unproven(self, names: Collection[str]) -> dict[str, str]:
        """Nodes that fail a check of the validation, with what they fail when they had their time for it."""
        start, left = time.monotonic(), names
        if names:
            self.say(f"{fold(names)}: checks of deploy validate")
        while left:
            try:
                failing = failing_checks(self.run, left)
            except DeployError as problem:
                return dict.fromkeys(left, f"its checks could not be made: {problem.findings[0].message}")
            left = [*failing]
            if left and time.monotonic() - start >= _PROOF_SECONDS:
                return {name: "; ".join(said) for name, said in failing.items()}
            if left:
                time.sleep(_PROOF_PAUSE)
        return {}

    def _by_jobs(self, names: Collection[str]) -> dict[str, str]:
        """Nodes on which the validation's jobs find something wrong; nobody else has jobs there meanwhile."""
        if not names:
            return {}
        try:
            return by_jobs(
                self.run, self.ledger, names, WHY, self.say, burn_in_hours=self.asked.burn_in_hours
            )
        except DeployError as problem:
            return dict.fromkeys(names, f"its jobs could not be run: {problem.findings[0].message}")

    def _loud(self, names: Collection[str]) -> dict[str, str]:
        """Waits until the alerts of nodes are quiet; gives those whose are not, with what they say."""
        start, quiet, told = time.monotonic(), dict[str, float](), list[str]()
        while names:
            now, said = time.monotonic(), alerts.look(self.run)
            loud = {name: why for name in names if (why := said.against(name, self.alarming[name]))}
            quiet = {name: quiet.get(name, now) for name in names if name not in loud}
            short = [name for name, since in quiet.items() if now - since < _QUIET_SECONDS]
            loud |= dict.fromkeys(short, "its alerts were not quiet for a minute")
            if not loud or now - start >= _ALERT_SECONDS:
                return loud
            if [*loud] != told:
                told = [*loud]
                self.say(f"waiting for the alerts of {fold(told)} to be quiet")
            time.sleep(_LOOK_SECONDS)
        return {}

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
            if not todo:
                return {name: _words(faults[name]) for name in ill} | late
            spared: list[str] = []
            if gentle := {name: remedy for name, remedy in todo.items() if remedy.spares_jobs}:
                todo = gentle
            else:
                todo = self._of_one_vote(todo)
                if self.asked.budget:
                    late |= self._busy(todo, faults)
                else:
                    self.ledger.emptied([*todo], WHY, self.asked.way, self.say)
                spared, needed = self._spared(tuple(name for name in _rebooted(todo) if name not in late))
                late |= needed
                todo = {name: remedy for name, remedy in todo.items() if name not in late}
            if not todo:
                continue
            self._try(todo)
            late |= without_vote(self.ledger, [name for name in spared if not self.tried[name][todo[name]]])
            for name, remedy in todo.items():
                if not self.tried[name][remedy]:
                    ends = (it for it in faults[name] if it.alert and remedy in remedies([it]))
                    self.answered |= {(name, fault) for fault in ends}
            faults = {**faults, **self._judged([*todo])}

    def _step(self, name: str, faults: Iterable[Fault]) -> Remedy | None:
        return next_remedy(faults, self.tried.get(name, {}))

    def _of_one_vote(self, todo: Mapping[str, Remedy]) -> dict[str, Remedy]:
        """Of hosts with a vote on the database that are to reboot the first alone; another one is next."""
        reboots = _rebooted(todo)
        left_out = {*reboots} - {*of_one_vote(self.ledger, reboots)}
        return {name: remedy for name, remedy in todo.items() if name not in left_out}

    def _spared(self, names: tuple[str, ...]) -> tuple[list[str], Bad]:
        """Those without which the database goes on for a moment, and those without which it would not."""
        try:
            return going_without(self.ledger, names), {}
        except DeployError as problem:
            why = "; ".join(f"{it.where}: {it.message}" for it in problem.findings)
            votes = [name for name in names if name in voters(self.ledger.site)]
            return [], dict.fromkeys(votes, f"not rebooted, the database would not go on without it: {why}")

    def _busy(self, todo: Mapping[str, Remedy], faults: Mapping[str, tuple[Fault, ...]]) -> dict[str, str]:
        """Nodes with jobs, which wait for another turn."""
        jobs = {node.name: node.jobs for node in self.ledger.nodes([*todo])}
        return {
            name: f"{_words(faults[name])}; {remedy} waits for the end of {', '.join(jobs[name])}"
            for name, remedy in todo.items()
            if jobs[name]
        }

    def _try(self, todo: Mapping[str, Remedy]) -> None:
        """One remedy on each of some nodes."""
        for name, remedy in todo.items():
            if remedy.is_heavy:
                self.doubted.add(name)
            # Noted before it is done: what takes the node away shall not be done again and again.
            said = {"node": name, "remedy": f"{remedy.name} {remedy.subject}".strip()}
            self.ledger.ask("remedies", [name], said)
            self.tried.setdefault(name, {})[remedy] = "was begun"
        together = _rebooted(todo)
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
        hosts, login = self.nodes.site.hosts, self.options.login
        seconds = _HEAVY_SECONDS if remedy.is_heavy else _REMEDY_SECONDS
        answer = ask({name: question}, hosts, login, source="remedies", seconds=seconds)[name]
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


def _rebooted(todo: Mapping[str, Remedy]) -> tuple[str, ...]:
    return tuple(name for name, remedy in todo.items() if remedy.name == REBOOT)


def _words(faults: Iterable[Fault]) -> str:
    return "; ".join(fault.words for fault in faults)

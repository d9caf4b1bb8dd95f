"""What a run converged is recorded on its hosts: on each as soon as the run has nothing more to do there."""

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from deploy import __version__
from deploy.engine.members import Known
from deploy.engine.records import Records
from deploy.engine.run import Run
from deploy.engine.work import Work
from deploy.judge.drift import Drift, left_over
from deploy.plan.build import Plan
from deploy.plan.catalog import Phase
from deploy.plan.probes import files, probes
from deploy.run.events import Event, HostResult, Level, Notice, PhaseEnded
from deploy.run.journal import last_run
from deploy.run.managed import State, later
from deploy.run.ssh import Unanswered
from deploy.site.hardware import Hardware

_DIGITS = 16


@dataclass(frozen=True)
class Written:
    """What there is to say of it, and the digests of the records of hosts that now have all theirs.

    ``left`` is by host, in words, what was managed before, is managed no more, and is still there;
    ``members`` by controller the hosts that it remembers, None where nothing was written to any.
    """

    notices: tuple[Notice, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    members: Mapping[str, Known] | None = None


@dataclass
class Recording:
    """The records of one run: of a phase on a host where its last task ended and left nothing to a later run.

    ``held`` are by host the phases whose records were found true, ``known`` the digests of what was written
    before: where it would be the same, records are left as they are.
    """

    records: Records
    contract: Mapping[str, Hardware]
    plan: Plan
    held: Mapping[str, Collection[str]]
    known: Mapping[str, str]
    _beside: ThreadPoolExecutor
    _parts: list[Future[Written]] = field(default_factory=list)
    _begun: set[str] = field(default_factory=set)

    @classmethod
    @contextmanager
    def of(
        cls,
        records: Records,
        contract: Mapping[str, Hardware],
        plan: Plan,
        *,
        held: Mapping[str, Collection[str]],
        known: Mapping[str, str],
    ) -> Iterator[Self]:
        """A recording; whoever leaves it has waited for what was begun."""
        with ThreadPoolExecutor(1) as beside:
            yield cls(records, contract, plan, held, known, beside)

    def go_on(self, events: Sequence[Event]) -> None:
        """With the phase that the last event ends: begins to record the hosts with which the run is done."""
        last = events[-1]
        if not isinstance(last, PhaseEnded):
            return
        open_phases = {name: self._open[name] for name in last.hosts if name in self._open}
        for phases in open_phases.values():
            phases.discard(last.phase)
        # Most phases are the last of no host; then what happened until now need not be looked through.
        if done := {name for name, phases in open_phases.items() if not phases}:
            self._begin(tuple(events), done)

    def finish(self, events: Iterable[Event], answering: Iterable[str]) -> Written:
        """Records the others of the hosts that still answer; what came of all of it."""
        self._begin(tuple(events), answering)
        parts = [part.result() for part in self._parts]
        return Written(
            tuple(notice for part in parts for notice in part.notices),
            {name: digest for part in parts for name, digest in part.digests.items()},
            {name: left for part in parts for name, left in part.left.items()},
        )

    def _begin(self, told: tuple[Event, ...], names: Iterable[str]) -> None:
        if new := {*names} - self._begun:
            self._begun |= new
            self._parts.append(self._beside.submit(self._write, told, new))

    def _write(self, told: tuple[Event, ...], names: Collection[str]) -> Written:
        questions = self._questions(told, names)
        answers = self.records.ask(questions)
        unanswered = {name: why for name, why in answers.items() if isinstance(why, Unanswered)}
        whole = [
            name
            for name, (_, content) in questions.items()
            if name not in unanswered
            and self._expected[name].keys() <= {*content["phases"], *self.held.get(name, ())}
        ]
        notices = tuple(
            Notice(time.time(), Level.WARNING, f"{name}: what was converged could not be recorded: {of.why}")
            for name, of in unanswered.items()
            if not of.is_by_choice
        )
        answered = {name: of for name, of in answers.items() if name not in unanswered}
        left = {name: left_over(of["left"]) for name, of in answered.items()}
        notices += tuple(_meanwhile(answered))
        return Written(notices, {name: self._digests[name] for name in whole}, left)

    def _questions(
        self, told: tuple[Event, ...], names: Collection[str]
    ) -> dict[str, tuple[str, dict[str, Any]]]:
        """By host what it is told to record: the phases that ran to their end there."""
        ended = {
            (event.phase, name) for event in told if isinstance(event, PhaseEnded) for name in event.hosts
        }
        managed = _managed(event for event in told if isinstance(event, HostResult) and event.host in names)
        pending: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for event in told:
            if isinstance(event, HostResult) and event.pending:
                pending[event.host, event.phase] += event.pending
        not_whole = {host for host, _ in pending}
        questions: dict[str, tuple[str, dict[str, Any]]] = {}
        for step in self.plan.steps:
            for name in step.hosts:
                if name not in names or (step.phase.name, name) not in ended:
                    continue
                if self.known.get(name) == self._digests[name] and name not in not_whole:
                    continue
                expected = self._expected[name]
                every = [*expected]
                content: dict[str, Any] = {"phases": {}, "only": [*every], "part_in": every, "pending": {}}
                content["version"] = __version__
                told_to_host = questions.setdefault(name, ("record", content))[1]
                if texts := pending.get((name, step.phase.name)):
                    told_to_host["only"].remove(step.phase.name)
                    told_to_host["pending"][step.phase.name] = list(dict.fromkeys(texts))
                    continue
                phases = told_to_host["phases"]
                phases[step.phase.name] = {
                    "fingerprint": expected[step.phase.name],
                    "managed": _with_hidden(managed[name, step.phase.name], step.phase),
                    "probes": [probe for role in step.phase.roles for probe in probes(role)],
                }
        return questions

    @cached_property
    def _expected(self) -> dict[str, dict[str, str]]:
        return self.records.expected(self.contract)

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {name: _digest(of_phases) for name, of_phases in self._expected.items()}

    @cached_property
    def _open(self) -> dict[str, set[str]]:
        """By host the phases of the plan that did not end there yet."""
        phases: defaultdict[str, set[str]] = defaultdict(set)
        for step in self.plan.steps:
            for name in step.hosts:
                phases[name].add(step.phase.name)
        return dict(phases)


def known_records(run: Run, work: Work, *, renews: bool) -> dict[str, str]:
    """By host what is known of its records: a digest of all of them, as this site wrote them last.

    Of hosts whose records the work ``renews`` nothing is known.
    """
    last = last_run(run.site.directory)
    without = work.plan.hosts if renews else ()
    known = last.recorded if last else {}
    return {name: of for name, of in known.items() if name in run.site.hosts and name not in without}


def _meanwhile(answers: Mapping[str, Any]) -> Iterator[Notice]:
    """What is not as the run left it; the records keep what the run left, so that the next one fixes it.

    What no run fixes is told by each.
    """
    for name, answer in answers.items():
        for drift in dict.fromkeys(map(Drift.of, answer["differing"])):
            why = "so its phase has no end" if drift.cannot_be_asked else "changed by others during this run"
            end = "" if drift.is_objection else f" ({why}): the next run looks again"
            yield Notice(time.time(), Level.WARNING, f"{name}: {drift}{end}")


def _digest(of_phases: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(of_phases, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _managed(results: Iterable[HostResult]) -> Mapping[tuple[str, str], dict[str, dict[str, State]]]:
    """By host and phase what was managed, by kind and name, in the state in which the run left it."""
    last: dict[tuple[str, str, str], State] = {}
    named: defaultdict[tuple[str, str], dict[tuple[str, str], None]] = defaultdict(dict)
    for result in results:
        for kind, states in result.manages.items():
            for name, state in states.items():
                place = (result.host, kind, name)
                last[place] = later(last.get(place, {}), state)
                named[result.host, result.phase][kind, name] = None
    found: defaultdict[tuple[str, str], dict[str, dict[str, State]]] = defaultdict(dict)
    for (host, phase), names in named.items():
        for kind, name in names:
            found[host, phase].setdefault(kind, {})[name] = last[host, kind, name]
    return found


def _with_hidden(managed: Mapping[str, dict[str, State]], phase: Phase) -> dict[str, dict[str, State]]:
    """What is managed, with the files of tasks whose results are hidden."""
    hidden: dict[str, State] = {path: {} for role in phase.roles for path in files(role)}
    return {**managed, "files": {**hidden, **managed.get("files", {})}}

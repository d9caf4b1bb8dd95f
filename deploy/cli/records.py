"""The records that hosts keep of what was converged there: asked before a run, written after it."""

import hashlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deploy import __version__
from deploy.cli.options import Options
from deploy.judge.drift import HostState, host_state
from deploy.plan.build import Plan
from deploy.plan.catalog import Phase
from deploy.plan.fingerprint import fingerprints
from deploy.plan.probes import probes
from deploy.plan.wiring import wired_variables
from deploy.run.events import Event, HostResult, HostVerified, Level, Notice, PlayStarted
from deploy.run.ssh import Login, Unanswered, ask
from deploy.show.summary import Summary
from deploy.site.hardware import Hardware
from deploy.site.inventory import Site
from deploy.site.node_lists import fold
from deploy.site.secrets import read_secrets, secrets_file

_DIGITS = 16


@dataclass(frozen=True)
class Written:
    """What there is to say of it, and the digests of the records of hosts that now have all theirs."""

    notices: list[Notice]
    digests: dict[str, str]


@dataclass(frozen=True)
class Records:
    """The records on a site's hosts."""

    site: Site
    options: Options

    def verify(self, names: Iterable[str]) -> dict[str, Any]:
        """What hosts answer that are asked whether they still are as they were recorded."""
        return self._ask({name: ("verify", {}) for name in names})

    def states(
        self, contract: Mapping[str, Hardware], verified: Callable[[], Mapping[str, Any]]
    ) -> tuple[dict[str, HostState], list[Event]]:
        """What the hosts answered, held against the site, and the events that tell of it.

        ``verified`` gives the answers of ``verify``; it is called once it is known what to expect.
        """
        expected = self._expected(contract)
        answers = verified()
        states = {name: host_state(answer, expected[name]) for name, answer in answers.items()}
        now = time.time()
        told: list[Event] = [
            HostVerified(now, name, tuple(sorted(state.converged)), tuple(map(str, state.drift)))
            for name, state in states.items()
            if not state.why
        ]
        return states, [*told, *_not_verified(answers, now)]

    def forget(self, plan: Plan, unrecorded: Mapping[str, Collection[str]]) -> None:
        """Removes the records of what is about to be worked on: an interrupted phase has none."""
        recorded = {
            name: [phase for phase in phases if phase not in unrecorded.get(name, ())]
            for name, phases in _phases_by_host(plan).items()
        }
        self._ask({name: ("forget", {"phases": phases}) for name, phases in recorded.items() if phases})

    def write(
        self,
        contract: Mapping[str, Hardware],
        plan: Plan,
        events: Iterable[Event],
        summary: Summary,
        *,
        held: Mapping[str, Collection[str]],
        known: Mapping[str, str],
    ) -> Written:
        """Writes records of all that ran to its end.

        ``held`` are by host the phases whose records were found true, ``known`` the digests of what was
        written before: where it would be the same, records are left as they are.
        """
        expected = self._expected(contract)
        digests = {name: _digest(of_phases) for name, of_phases in expected.items()}
        told = list(events)
        began = {event.play for event in told if isinstance(event, PlayStarted)}
        managed = _managed(told)
        questions: dict[str, tuple[str, Mapping[str, Any]]] = {}
        for step in plan.steps:
            if step.phase.title not in began:
                continue
            for name in step.hosts:
                if known.get(name) == digests[name]:
                    continue
                if name in summary.hosts and summary.hosts[name].is_good:
                    only = [*expected[name]]
                    new: tuple[str, dict[str, Any]] = (
                        "record",
                        {"phases": {}, "only": only, "version": __version__},
                    )
                    phases = questions.setdefault(name, new)[1]["phases"]
                    phases[step.phase.name] = {
                        "fingerprint": expected[name][step.phase.name],
                        "managed": managed[name, step.phase.title],
                        "probes": _probes(step.phase),
                    }
        answers = self._ask(questions)
        unanswered = {name: why for name, why in answers.items() if isinstance(why, Unanswered)}
        whole = [
            name
            for name, (_, content) in questions.items()
            if name not in unanswered and expected[name].keys() <= {*content["phases"], *held.get(name, ())}
        ]
        notices = [
            Notice(time.time(), Level.WARNING, f"{name}: what was converged could not be recorded: {of.why}")
            for name, of in unanswered.items()
            if not of.is_by_choice
        ]
        return Written(notices, {name: digests[name] for name in whole})

    def _ask(self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
        return ask(questions, self.site.hosts, login_of(self.options), self.options.forks)

    def _expected(self, contract: Mapping[str, Hardware]) -> dict[str, dict[str, str]]:
        secrets = read_secrets(secrets_file(self.site), self.options.vault_password_file)
        wired = wired_variables(self.site, contract, is_limited=bool(self.options.limit))
        return fingerprints(self.site, wired, secrets)


def login_of(options: Options) -> Login:
    """How plain ssh logs in, by what the admin typed."""
    return Login(
        user=options.user,
        private_key=str(options.private_key) if options.private_key else None,
        asks_for_passwords=bool(options.connection_password or options.become_password),
        environment=os.environ,
    )


def _digest(of_phases: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(of_phases, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _phases_by_host(plan: Plan) -> dict[str, list[str]]:
    phases: defaultdict[str, list[str]] = defaultdict(list)
    for step in plan.steps:
        for name in step.hosts:
            phases[name].append(step.phase.name)
    return phases


def _managed(events: Iterable[Event]) -> Mapping[tuple[str, str], dict[str, list[str]]]:
    """By host and play the names of what was managed, each once, by kind."""
    found: defaultdict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    for event in events:
        if isinstance(event, HostResult):
            for kind, names in event.manages.items():
                known = found[event.host, event.play].setdefault(kind, [])
                known += [name for name in names if name not in known]
    return found


def _probes(phase: Phase) -> list[dict[str, Any]]:
    return [probe for role in phase.roles for probe in probes(role)]


def _not_verified(answers: Mapping[str, Any], now: float) -> Iterator[Event]:
    """Why hosts were not asked; that one cannot be reached Ansible says itself."""
    whys: defaultdict[str, list[str]] = defaultdict(list)
    for name, answer in answers.items():
        if isinstance(answer, Unanswered) and answer.is_by_choice:
            whys[answer.why].append(name)
    for why, names in whys.items():
        yield Notice(now, Level.WARNING, f"not verified, so every phase runs: {fold(names)}: {why}")

"""The records that hosts keep of what was converged there, asked and taken away before a run."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deploy.engine.options import Options
from deploy.judge.drift import HostState, host_state, left_over
from deploy.plan.build import Plan
from deploy.plan.catalog import PHASES
from deploy.plan.fingerprint import fingerprints
from deploy.plan.generated_inventory import wired_variables
from deploy.run.events import Event, HostVerified, Level, Notice
from deploy.run.ssh import Unanswered, ask
from deploy.site.hardware import Hardware
from deploy.site.inventory import Site
from deploy.site.node_lists import fold
from deploy.site.secrets import read_secrets, secrets_file


@dataclass(frozen=True)
class Records:
    """The records on a site's hosts."""

    site: Site
    options: Options

    def verify(self, names: Iterable[str]) -> dict[str, Any]:
        """What hosts answer that are asked whether they still are as they were recorded."""
        return self.ask({name: ("look", {"phases": phases}) for name, phases in self._phases(names).items()})

    def left_over(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """In words what hosts have that was managed once, for those that answer."""
        asked = {name: ("left_over", {"phases": phases}) for name, phases in self._phases(names).items()}
        answers = self.ask(asked)
        return {name: left_over(left) for name, left in answers.items() if not isinstance(left, Unanswered)}

    def _phases(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The phases that hosts may take part in, whatever hardware they have."""
        members = {phase.name: {host.name for host in phase.candidates(self.site)} for phase in PHASES}
        return {name: [phase for phase in members if name in members[phase]] for name in names}

    def states(
        self, contract: Mapping[str, Hardware], verified: Callable[[], Mapping[str, Any]]
    ) -> tuple[dict[str, HostState], list[Event]]:
        """What the hosts answered to ``verify``, compared with the site, and the events that report it.

        ``verified`` gives the answers; it is called when it is known what to expect.
        """
        expected, answers = self.expected(contract), verified()
        states = {
            name: host_state(answer, expected[name])
            if isinstance(answer, Unanswered)
            else host_state(answer["records"], expected[name], answer["left"], answer["pending"])
            for name, answer in answers.items()
        }
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
        self.ask({name: ("forget", {"phases": phases}) for name, phases in recorded.items() if phases})

    def ask(self, questions: Mapping[str, tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
        """What hosts answer; by host name a verb of ``run/host_records.py`` and its arguments."""
        return ask(questions, self.site.hosts, self.options.login, self.options.forks)

    def expected(self, contract: Mapping[str, Hardware]) -> dict[str, dict[str, str]]:
        """By host and phase the fingerprint that a record should have."""
        kept = read_secrets(secrets_file(self.site), self.options.vault_password_file)
        secrets = {name: value for name, value in kept.items() if name not in self.options.rotation.pending}
        # As for all hosts: what a run on some of them leaves to a later one, it says (``deploy_pending``).
        wired = wired_variables(self.site.resolved, contract)
        return fingerprints(self.site, contract, wired, secrets)


def _phases_by_host(plan: Plan) -> dict[str, list[str]]:
    phases: defaultdict[str, list[str]] = defaultdict(list)
    for step in plan.steps:
        for name in () if step.phase.follows_membership else step.hosts:
            phases[name].append(step.phase.name)
    return phases


def _not_verified(answers: Mapping[str, Any], now: float) -> Iterator[Event]:
    """Why hosts were not asked; that one cannot be reached Ansible says itself."""
    whys: defaultdict[str, list[str]] = defaultdict(list)
    for name, answer in answers.items():
        if isinstance(answer, Unanswered) and answer.is_by_choice:
            whys[answer.why].append(name)
    for why, names in whys.items():
        yield Notice(now, Level.WARNING, f"not verified, so every phase runs: {fold(names)}: {why}")

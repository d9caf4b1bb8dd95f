"""What hosts answered in a validation, by what was asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deploy.run.events import Event, HostResult

Answer = Mapping[str, Any]

STATE = "state"
LOOK = "look"
SURROUNDINGS = "surroundings"
PACKETS = "packets"
SYSTEM = "system"
CREDENTIALS = "credentials"
PROMPT = "prompt"
JOBS = "jobs"
LEFTOVERS = "leftovers"
ADMINS = "admins"
MONITORING = "monitoring"
PORTAL = "portal"
COMPLAINTS = "complaints"
"""The steps of playbooks/validate.yml, which its tasks name as ``deploy_step``."""


@dataclass(frozen=True)
class Answers:
    """By host: the results of node_status, and the answers of deploy/validate/programs.

    ``silent`` says of a step and a host why there is no answer.
    """

    states: Mapping[str, HostResult] = field(default_factory=dict)
    looks: Mapping[str, Answer] = field(default_factory=dict)
    credentials: Mapping[str, Answer] = field(default_factory=dict)
    jobs: Answer | None = None
    leftovers: Mapping[str, Answer] = field(default_factory=dict)
    silent: Mapping[tuple[str, str], str] = field(default_factory=dict)
    complaints: Mapping[str, Answer] = field(default_factory=dict)
    admins: Mapping[str, Answer] = field(default_factory=dict)
    monitoring: Answer | None = None
    portal: Answer | None = None
    surroundings: Mapping[str, Answer] = field(default_factory=dict)
    packets: Mapping[str, Answer] = field(default_factory=dict)
    system: Mapping[str, Answer] = field(default_factory=dict)

    def told(self, controllers: Iterable[str], what: str) -> Answer | None:
        """What the first controller that answers says of Slurm; None when none does.

        Its ``code`` is null or not 0 when the command failed, ``why`` says why, ``out`` is its output.
        """
        silent = None
        for controller in controllers:
            words = (self.looks.get(controller) or {}).get("slurm") or {}
            if (answer := words.get(what)) and answer["code"] == 0:
                return dict(answer)
            silent = answer or silent
        return silent


def gathered(events: Iterable[Event]) -> Answers:
    """The answers in the events of a run."""
    results = [event for event in events if isinstance(event, HostResult)]
    by_step: dict[str, dict[str, HostResult]] = {}
    for result in results:
        by_step.setdefault(result.step, {})[result.host] = result

    def answers(step: str) -> dict[str, Answer]:
        return {h: r.answer for h, r in by_step.get(step, {}).items() if r.answer is not None}

    return Answers(
        states=by_step.get(STATE, {}),
        looks=answers(LOOK),
        credentials=answers(CREDENTIALS),
        jobs=next(iter(answers(JOBS).values()), None),
        leftovers=answers(LEFTOVERS),
        admins=answers(ADMINS),
        monitoring=next(iter(answers(MONITORING).values()), None),
        portal=next(iter(answers(PORTAL).values()), None),
        complaints=answers(COMPLAINTS),
        surroundings=answers(SURROUNDINGS),
        packets=answers(PACKETS),
        system=answers(SYSTEM),
        silent={(r.step, r.host): r.message for r in results if r.answer is None and r.is_trouble},
    )

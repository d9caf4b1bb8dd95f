"""What hosts answered in a validation, by what was asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deploy.run.events import Event, HostResult

Answer = Mapping[str, Any]

STATE = "Ask the hosts for their state"
LOOK = "Look at the hosts"
SURROUNDINGS = "Look at what users meet there"
PACKETS = "Measure what packets between hosts meet"
CREDENTIALS = "Decode everybody's credential"
JOBS = "Run the validation's jobs"
LEFTOVERS = "Look for what jobs left"
ADMINS = "Ask PAM about admins"
MONITORING = "Ask the monitoring"
COMPLAINTS = "Look for what the hardware complained of"
"""The tasks of playbooks/validate.yml."""


@dataclass(frozen=True)
class Evidence:
    """By host: the results of node_status, and the answers of deploy/validate/programs.

    ``silent`` says of a task and a host why there is no answer.
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
    surroundings: Mapping[str, Answer] = field(default_factory=dict)
    packets: Mapping[str, Answer] = field(default_factory=dict)

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


def gathered(events: Iterable[Event]) -> Evidence:
    """The evidence in the events of a run."""
    results = [event for event in events if isinstance(event, HostResult)]
    by_task: dict[str, dict[str, HostResult]] = {}
    for result in results:
        by_task.setdefault(result.task, {})[result.host] = result

    def answers(task: str) -> dict[str, Answer]:
        return {h: r.answer for h, r in by_task.get(task, {}).items() if r.answer is not None}

    return Evidence(
        states=by_task.get(STATE, {}),
        looks=answers(LOOK),
        credentials=answers(CREDENTIALS),
        jobs=next(iter(answers(JOBS).values()), None),
        leftovers=answers(LEFTOVERS),
        admins=answers(ADMINS),
        monitoring=next(iter(answers(MONITORING).values()), None),
        complaints=answers(COMPLAINTS),
        surroundings=answers(SURROUNDINGS),
        packets=answers(PACKETS),
        silent={(r.task, r.host): r.message for r in results if r.answer is None and r.is_trouble},
    )

"""Seconds, their ratios, and what the ratios should be."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Part(StrEnum):
    """What can be measured by itself: all of it on the same machines, in one run."""

    LARGE = "large"
    EXPORTER = "exporter"
    ONE_MORE = "one-more"
    RERUN = "rerun"
    FIRST = "first"
    ABLATION = "ablation"


class Compared(StrEnum):
    """What two versions are compared by."""

    FIRST = "first deployment"
    RERUN = "rerun: nothing to change"
    FULL = "rerun: --full"
    ONE_MORE = "one node more"


class Measured(StrEnum):
    """What is measured, in seconds on the clock."""

    RERUN = "rerun: deploy cluster"
    RERUN_FULL = "rerun: deploy cluster --full"
    RERUN_PLAIN = "rerun: ansible-playbook, default settings"
    RERUN_TUNED = "rerun: ansible-playbook, settings of deploy"
    RERUN_PYINFRA = "rerun: pyinfra, the same packages and files"
    ONE_TO_3 = "one node more: to 3"
    ONE_TO_9 = "one node more: to 9"
    FIRST = "first deployment: deploy cluster, then a job"
    FLOOR = "first deployment: floor by plain ssh, then a job"
    CHECK_1K = "offline check: 1,000 nodes"
    CHECK_10K = "offline check: 10,000 nodes"
    PLAN_1K = "offline plan: 1,000 nodes"
    PLAN_10K = "offline plan: 10,000 nodes"
    CPU_100 = "rerun: CPU of the controller, 100 simulated hosts"
    CPU_1K = "rerun: CPU of the controller, 1,000 simulated hosts"
    EXPORTER = "Slurm exporter: CPU of a round, 1,000 nodes"
    EXPORTER_PAUSE = "Slurm exporter: from one round to the next"


MEASURED: Mapping[Part, tuple[Measured, ...]] = {
    Part.RERUN: (
        *(Measured.RERUN, Measured.RERUN_FULL, Measured.RERUN_PLAIN),
        *(Measured.RERUN_TUNED, Measured.RERUN_PYINFRA),
    ),
    Part.ONE_MORE: (Measured.ONE_TO_3, Measured.ONE_TO_9),
    Part.FIRST: (Measured.FIRST, Measured.FLOOR),
    Part.LARGE: (
        *(Measured.CHECK_1K, Measured.CHECK_10K, Measured.PLAN_1K, Measured.PLAN_10K),
        *(Measured.CPU_100, Measured.CPU_1K),
    ),
    Part.EXPORTER: (Measured.EXPORTER, Measured.EXPORTER_PAUSE),
}


@dataclass(frozen=True)
class Goal:
    """A ratio and the most it should be."""

    title: str
    measured: Measured
    against: Measured
    most: float


GOALS = (
    Goal("rerun / plain Ansible", Measured.RERUN, Measured.RERUN_PLAIN, 0.03),
    Goal("rerun / pyinfra", Measured.RERUN, Measured.RERUN_PYINFRA, 0.30),
    Goal("full rerun / Ansible with the same settings", Measured.RERUN_FULL, Measured.RERUN_TUNED, 1.03),
    Goal("first deployment / floor", Measured.FIRST, Measured.FLOOR, 1.30),
    Goal("one node more: to 9 / to 3", Measured.ONE_TO_9, Measured.ONE_TO_3, 1.20),
    Goal("offline check: 10,000 nodes / 1,000 nodes", Measured.CHECK_10K, Measured.CHECK_1K, 10.0),
    Goal("offline plan: 10,000 nodes / 1,000 nodes", Measured.PLAN_10K, Measured.PLAN_1K, 10.0),
    Goal("CPU of the controller: 1,000 hosts / 100 hosts", Measured.CPU_1K, Measured.CPU_100, 10.0),
    Goal("Slurm exporter: share of a core", Measured.EXPORTER, Measured.EXPORTER_PAUSE, 0.01),
)

Figures = Mapping[Measured, Sequence[float]]

NOTHING = "nothing"
"""What those runs are without that are measured against."""
ENOUGH = 1.05
"""How many times as long at least one run has to take without a patch that is kept."""
Without = Mapping[str, Mapping[str, Sequence[float]]]
"""By what was run, and by the patch that it was without, the seconds of each time."""


def ratio(goal: Goal, figures: Figures) -> float:
    """The ratio of the medians."""
    return statistics.median(figures[goal.measured]) / statistics.median(figures[goal.against])


def goals_of(figures: Figures) -> list[Goal]:
    """The goals of what was measured."""
    return [goal for goal in GOALS if goal.measured in figures and goal.against in figures]


def table(figures: Figures) -> str:
    """Everything measured, and every goal, a line each."""
    width = max(map(len, Measured))
    lines = [f"{'seconds':<{width}}  median  fastest-slowest"]
    for measured, seconds in figures.items():
        spread = f"{min(seconds):.1f}-{max(seconds):.1f}"
        lines.append(f"{measured:<{width}}  {statistics.median(seconds):6.1f}  {spread:>15}")
    lines += ["", f"{'ratio of the medians':<{width}}   ratio   target"]
    for goal in goals_of(figures):
        found = ratio(goal, figures)
        verdict = "met" if found <= goal.most else "MISSED"
        lines.append(f"{goal.title:<{width}}  {found:6.3f}  <= {goal.most:.2f}  {verdict}")
    return "\n".join(lines)


def by_part(figures: Figures) -> dict[str, dict[str, list[float]]]:
    """The same for programs: the seconds of each part that was measured, by the names of `Measured`."""
    return {
        part: {measured.name.lower(): [round(value, 2) for value in figures[measured]] for measured in all_of}
        for part, all_of in MEASURED.items()
        if all_of[0] in figures
    }


def of_parts(parts: Mapping[str, Mapping[str, Any]]) -> dict[Measured, Sequence[float]]:
    """What `by_part` was made from; other parts are left out."""
    figures = (parts[part] for part in MEASURED if part in parts)
    return {Measured[name.upper()]: seconds for part in figures for name, seconds in part.items()}


def rows_without(found: Without) -> list[tuple[str, ...]]:
    """A row for each patch: what it is worth to each run; nothing where that was not measured."""
    return [
        (which, *(f"{worth(seconds, which):.2f}" if which in seconds else "" for seconds in found.values()))
        for which in next(iter(found.values()))
        if which != NOTHING
    ]


def worth(seconds: Mapping[str, Sequence[float]], which: str) -> float:
    """How many times as long a run takes without a patch, by the medians."""
    return statistics.median(seconds[which]) / statistics.median(seconds[NOTHING])


def table_without(found: Without) -> str:
    """For a terminal."""
    lines = [("without", *found), *rows_without(found)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
    )


THIS = "this"
"""What the version that measures is called beside another."""
NOT_SLOWER = 1.03
"""How many times as much as the other version this one may take."""


class Cost(Protocol):
    """What a run took."""

    @property
    def seconds(self) -> float:
        """On the clock."""
        ...

    @property
    def cpu(self) -> float:
        """Of CPU, by the command and its children, in seconds."""
        ...


Costs = Mapping[Compared, Mapping[str, Sequence[Cost]]]
"""By what was run and by the version, each time that it was."""


def table_against(costs: Costs) -> str:
    """Medians of both versions, on the clock and of CPU, and how many times as much this one takes."""
    other = next(name for by_version in costs.values() for name in by_version if name != THIS)
    lines = [f"{'':<25}{'seconds':<9}{'times':>6}{other:>10}{THIS:>10}{'ratio':>8}   target"]
    for what, by_version in costs.items():
        for unit, values in seconds_of(by_version).items():
            before, now = (statistics.median(values[version]) for version in (other, THIS))
            verdict = "met" if now / before <= NOT_SLOWER else "MISSED"
            figures = f"{len(values[THIS]):>6}{before:>10.2f}{now:>10.2f}{now / before:>8.3f}"
            lines.append(f"{what:<25}{unit:<9}{figures}  <= {NOT_SLOWER:.2f}  {verdict}")
    return "\n".join(lines)


def seconds_of(by_version: Mapping[str, Sequence[Cost]]) -> dict[str, dict[str, list[float]]]:
    """The same as numbers: by the kind of seconds, and by the version."""
    return {
        "clock": {name: [round(cost.seconds, 2) for cost in costs] for name, costs in by_version.items()},
        "CPU": {name: [round(cost.cpu, 2) for cost in costs] for name, costs in by_version.items()},
    }


def tables(figures: Figures, without: Without, costs: Costs) -> list[str]:
    """Of all that was measured, and of nothing else."""
    found = [table(figures)] if figures else []
    found += [table_without(without)] if without else []
    return [*found, table_against(costs)] if costs else found

"""Everything that a check may look at: what the site promises, and what hosts, Slurm and jobs answered."""

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from deploy.judge.site_status import SiteStatus
from deploy.plan.catalog import members
from deploy.plan.generated_inventory import shared_variables
from deploy.site.hardware import Hardware
from deploy.site.inventory import Site
from deploy.validate import slurm_text
from deploy.validate.answers import Answers
from deploy.validate.questions import Questions
from deploy.validate.result import Result, failed, not_measured, passed
from deploy.validate.thresholds import Thresholds

Run = Mapping[str, Any]
_TAKEN = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_REFUSED_FOR_NOW = ("Immediate execution impossible", "Requested nodes are busy", "temporarily unavailable")


@dataclass(frozen=True)
class Context:
    """What a cluster promises, and what it showed."""

    site: Site
    contract: Mapping[str, Hardware]
    questions: Questions
    answers: Answers
    status: SiteStatus
    thresholds: Thresholds = field(default_factory=Thresholds)
    inventory: str = "inventory.ini"
    whole: Site | None = None
    """The site with the hosts that are switched off: Slurm has them, and nobody asked them."""

    @cached_property
    def switched_off(self) -> frozenset[str]:
        """The nodes that Slurm has switched off."""
        return frozenset(self.whole.hosts) - {*self.site.hosts} if self.whole else frozenset()

    @cached_property
    def slurm_hosts(self) -> tuple[str, ...]:
        """Where Slurm is: controllers, slurmdbd's hosts, nodes, login nodes."""
        return tuple(host.name for host in members(self.site, self.contract, "packages"))

    @cached_property
    def configured_hosts(self) -> tuple[str, ...]:
        """Those of them that have slurm.conf: slurmdbd alone reads none."""
        names = {host.name for host in (*self.site.controllers, *self.site.nodes, *self.site.logins)}
        return tuple(name for name in self.slurm_hosts if name in names)

    @cached_property
    def controllers(self) -> tuple[str, ...]:
        """The controllers' names."""
        return tuple(host.name for host in self.site.controllers)

    @property
    def controller(self) -> str:
        """The name of the one where commands are asked to be typed."""
        return self.site.controller.name

    @cached_property
    def promised(self) -> Mapping[str, Any]:
        """What slurmctld is configured with, as the role's variables say."""
        shared = shared_variables(self.whole or self.site, self.contract)
        return {**shared["phase_controller"], **shared["phase_associations"]}

    @cached_property
    def targets(self) -> Mapping[str, Any]:
        """Whom Prometheus should ask, by job."""
        found = shared_variables(self.site, self.contract)["phase_targets"]["scrape_targets_jobs"]
        return dict(found)

    def told(self, what: str) -> str | None:
        """What a controller said to one of the commands; None when none said it."""
        answer = self.answers.told(self.controllers, what)
        return str(answer["out"]) if answer and answer["code"] == 0 else None

    def why_silent(self, what: str) -> str:
        """Why no controller answered."""
        answer = self.answers.told(self.controllers, what)
        return (
            str(answer["why"] or f"exit code {answer['code']}") if answer else "no controller could be asked"
        )

    @cached_property
    def slurm_nodes(self) -> Mapping[str, Mapping[str, str]]:
        """Slurm's records of the nodes, by name; empty when it does not tell."""
        return slurm_text.first_of(slurm_text.records(self.told("nodes") or ""), "NodeName")

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The compute nodes' names."""
        return tuple(node.name for node in self.site.nodes)

    @property
    def system(self) -> Mapping[str, Mapping[str, Any]]:
        """What the hosts' kernels do for users."""
        return self.answers.system

    @property
    def jobs(self) -> Mapping[str, Any] | None:
        """What the jobs answered."""
        return self.answers.jobs

    def runs(self, what: str) -> Mapping[str, Any]:
        """By node, what a kind of job answered."""
        return (self.jobs or {}).get(what) or {}

    @cached_property
    def rows(self) -> list[Mapping[str, str]]:
        """The jobs in the accounting database."""
        return list((self.jobs or {}).get("accounting") or [])

    @cached_property
    def _rows_by_job(self) -> Mapping[str, Mapping[str, str]]:
        return {row["JobID"]: row for row in self.rows}

    def row(self, job: str) -> Mapping[str, str] | None:
        """The row of one job."""
        return self._rows_by_job.get(job)

    @cached_property
    def out_of_memory(self) -> Mapping[str, Mapping[str, str]]:
        """By node, the row of a job that was ended for its memory."""
        return {row["NodeList"]: row for row in self.rows if row["State"].startswith("OUT_OF_ME")}

    def type_of(self, node: str) -> str:
        """Nodes with the same contract are of one type."""
        return str(sorted((key, str(value)) for key, value in self.contract.get(node, {}).items()))

    def is_taken(self, node: str, run: Run) -> bool:
        """Whether a job did not start because the node belongs to other jobs at the moment."""
        state = self.slurm_nodes.get(node, {}).get("State", "")
        return bool(_TAKEN & {*state.replace("*", "").split("+")}) and is_refused(run)

    @cached_property
    def surroundings(self) -> Mapping[str, Mapping[str, Any]]:
        """What users meet on the hosts, in the inventory's order: of as many, the first are right."""
        told = self.answers.surroundings
        return {name: told[name] for name in self.site.hosts if name in told}

    def value(self, name: str) -> Any:  # noqa: ANN401 - a variable is whatever its role says
        """A variable of the controller."""
        return self.site.controller.value(name)

    def accounted(self, name: str) -> Any:  # noqa: ANN401 - a variable is whatever its role says
        """A variable of the host that makes accounts."""
        return self.site.accounting_lead[0].value(name)


def is_refused(run: Run) -> bool:
    """Whether a job did not start because there was no room for it at the moment."""
    if run["code"] == 0 or run["answers"]:
        return False
    return any(words in run["said"] for words in _REFUSED_FOR_NOW)


def last_line(run: Run) -> str:
    """Why a program did not do what it should."""
    if run["code"] is None:
        return f"no end after {run['seconds']:.0f} s"
    lines = [line.strip() for line in run["said"].splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {run['code']}"


def first_error(run: Run) -> str:
    """Why a step of several tasks failed: Slurm ends the others, and says so last."""
    said = [line.strip() for line in run["said"].splitlines() if line.startswith("srun: error: ")]
    told = [line for line in said if not line.endswith((": Killed", ": Terminated"))]
    return told[0] if told and run["code"] is not None else last_line(run)


def without_jobs(context: Context) -> Result:
    """Why no job was run."""
    silent = [why for (_, host), why in context.answers.silent.items() if host == context.site.logins[0].name]
    if context.questions.plan is None:
        return not_measured("no job was asked for")
    return not_measured(
        f"the jobs could not be run: {silent[-1] if silent else 'the login node was not asked'}"
    )


def blamed(failures: Collection[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Pairs of hosts between which something fails -> each host at fault, with its other ends.

    The one with the most failures first; what it explains is not said of others. Of equals, the one that was
    asked is it, not the one that asked; then the first by name.
    """
    left: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    asked: Counter[str] = Counter()
    for pair in set(failures):
        asked[pair[1]] += 1
        for host in pair:
            left[host].add(pair)

    def rank(host: str) -> tuple[int, bool, str]:
        return -len(left[host]), not asked[host], host

    heap = [rank(host) for host in left]
    heapq.heapify(heap)
    while heap:
        found = heapq.heappop(heap)
        worst = found[-1]
        # A rank from before some of its failures were explained is followed by the one from after.
        if not left[worst] or found != rank(worst):
            continue
        own = left.pop(worst)
        ends = sorted({end for pair in own for end in pair if end != worst})
        yield worst, ends or [worst]
        for pair in own:
            asked[pair[1]] -= 1
            for end in pair:
                left[end].discard(pair)
        for end in ends:
            heapq.heappush(heap, rank(end))


def each_host(
    names: Collection[str], wrong: Mapping[str, str], right: str, hint: str = ""
) -> Iterator[Result]:
    """A result per host: what is wrong with it, else what is right."""
    for name in names:
        if name in wrong:
            yield failed(wrong[name], name, hint=hint.format(host=name))
        else:
            yield passed(right, name)

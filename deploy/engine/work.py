"""Step: what is to be done: everything, but for what hosts were found to be converged to."""

import shlex
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deploy.engine.database import Converged, with_beginner
from deploy.engine.discover import Machines
from deploy.engine.run import Run
from deploy.engine.verify import Looked, goes_by_records
from deploy.errors import error
from deploy.judge.drift import HostState
from deploy.judge.upgrade_route import kept_releases
from deploy.plan.build import Plan, build_plan
from deploy.plan.generated_inventory import write_inventory
from deploy.plan.known_secrets import known_secrets, new_secrets
from deploy.run.events import Event, Level, Notice
from deploy.run.ssh import Unanswered
from deploy.site.hardware import Contract
from deploy.site.inventory import MEMBERS, OF_NODES, Site
from deploy.site.node_lists import fold


@dataclass(frozen=True)
class Work:
    """What is to be done, by the contract it was planned with, and the inventory source that says so."""

    plan: Plan
    contract: Contract
    generated: Path
    repairs: dict[str, dict[str, Any]]
    """By host variables for this run alone."""
    states: Mapping[str, HostState]
    """What hosts said of their records; empty where the run does not go by them."""
    looked: Looked
    fresh: frozenset[str] = frozenset()
    """Compute nodes, and nothing else, on which nothing is yet: no record, and no Slurm."""

    def without_fresh(self, run: Run) -> "Work":
        """The same without what is done on fresh nodes, which are checked all the same."""
        if not self.fresh:
            return self
        plan, generated = self.plan.without(self.fresh), run.place / "settled.json"
        write_inventory(generated, run.site, plan, self.contract, self.repairs)
        return replace(self, plan=plan, generated=generated)

    @property
    def held(self) -> dict[str, frozenset[str]]:
        """Phases of which hosts said that they are as recorded."""
        return {name: state.converged for name, state in self.states.items()}

    @property
    def unrecorded(self) -> dict[str, tuple[str, ...]]:
        """Phases of which hosts said that they have no record."""
        return {name: state.unrecorded for name, state in self.states.items() if not state.why}

    @property
    def left(self) -> dict[str, tuple[str, ...]]:
        """What hosts have, in words, that was managed once and is managed no more."""
        return {name: state.left for name, state in self.states.items() if not state.why}


def work_of(run: Run, machines: Machines, asked: Future[Looked], tell: Callable[[Event], None]) -> Work:
    """Compares what hosts said with the site, and writes the inventory source of what is left to do.

    Raises DeployError ``limit-before-controller``, and those of ``with_beginner``.
    """
    contract = machines.contract
    states: Mapping[str, HostState] = {}
    if goes_by_records(run) and not run.cancellation.is_asked:
        states, events = run.records.states(contract, lambda: asked.result().said)
        for event in events:
            tell(event)
    plan, begun = _planned(run, contract, states)
    looked = asked.result()
    _refuse_before_controller(run, looked)
    kept = _kept(run, looked, tell)
    repairs = {
        name: {**said, **kept.get(name, {}), **begun.get(name, {})}
        for name, said in _repairs(run, contract, states).items()
    }
    generated = run.place / "generated.json"
    write_inventory(generated, run.site, plan, contract, repairs)
    return Work(plan, contract, generated, repairs, states, looked, _fresh(run.site, states, looked))


def _planned(
    run: Run, contract: Contract, states: Mapping[str, HostState]
) -> tuple[Plan, dict[str, dict[str, Any]]]:
    """What is left to do, and by host what it is told where a member of the database has to begin."""
    changed = [name for name, state in states.items() if state.drift]

    def planned(done: Converged) -> Plan:
        return build_plan(run.site, contract, limit=run.limit, converged=done, changed=changed)

    done = {name: state.converged for name, state in states.items()}
    return with_beginner(run.site, run.options, done, planned)


def _refuse_before_controller(run: Run, looked: Looked) -> None:
    """Where nothing is on the controller yet, others have nothing to belong to."""
    name = run.site.controller.name
    said = looked.said.get(name)
    if run.limit is None or name in run.limit or name not in run.hosts or not run.options.is_whole:
        return
    if said is None or isinstance(said, Unanswered) or said["slurm"]:
        return
    raise error(
        "limit-before-controller",
        f"there is no Slurm on {name}, the controller, so {', '.join(sorted(run.limit)[:5])} cannot join it",
        where="--limit",
        hint=f"{run.again('')}   (all hosts), or name {name}, too: "
        f"--limit {shlex.quote(','.join([name, *sorted(run.limit)[:5]]))}",
    )


def _fresh(site: Site, states: Mapping[str, HostState], looked: Looked) -> frozenset[str]:
    serve = {host.name for name in MEMBERS if name not in OF_NODES for host in site.group(name)}
    return frozenset(
        host.name
        for host in site.nodes
        if host.name not in serve
        and (state := states.get(host.name))
        and not (state.why or state.phases or state.pending or looked.said[host.name]["slurm"])
    )


def _repairs(run: Run, contract: Contract, states: Mapping[str, HostState]) -> dict[str, dict[str, Any]]:
    """By host what roles are told to put right, and which secrets hosts are compared with."""
    current = {name: state.current for name, state in states.items()}
    replaces = run.options.new_secrets
    secrets = new_secrets(run.site) if replaces else known_secrets(run.site, contract, current)
    repairs = {name: state.repairs for name, state in states.items()}
    return {name: {**repairs.get(name, {}), **secrets.get(name, {})} for name in run.site.hosts}


def _kept(run: Run, looked: Looked, tell: Callable[[Event], None]) -> dict[str, dict[str, Any]]:
    """By host the release of Slurm that it keeps: only ``deploy upgrade`` brings another. Says so."""
    said = {name: answer for name, answer in looked.said.items() if not isinstance(answer, Unanswered)}
    installed = {name: str(answer.get("slurm", "")) for name, answer in said.items()}
    wanted = {host.name: str(host.value("slurm_packages_version")) for host in run.site.cluster}
    kept = kept_releases(wanted, installed, run.controllers)
    for release in sorted(set(kept.values())):
        names = [name for name in kept if kept[name] == release]
        message = (
            f"{fold(names)}: Slurm stays {release}, though the site wants {wanted[names[0]]}; to change it: "
            f"{run.command('upgrade')}"
        )
        tell(Notice(time.time(), Level.WARNING, message))
    controller = kept.get(run.site.controller.name, "")
    return {
        name: {"slurm_packages_kept": release, "pyxis_is_kept": release != controller}
        for name, release in kept.items()
    }

"""All hosts of a site with what is wrong with each, the most important first."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from deploy.errors import ExitCode, Finding, Severity
from deploy.judge.convergence import Convergence, recorded_convergence
from deploy.judge.database_lead import member_troubles
from deploy.judge.departed import Departed
from deploy.judge.drift import HostState
from deploy.judge.host import Judge, Promise
from deploy.judge.last_drill import LastDrill
from deploy.judge.leading import Leading
from deploy.judge.node_status import NodeStatus, Reach, Service, SlurmNode, answer_of, slurm_nodes
from deploy.plan.declarations import optional_units
from deploy.run.events import HostResult
from deploy.site.inventory import Site


@dataclass(frozen=True)
class JudgedHost:
    """A host, what is wrong with it, which of its services are down, and whether Slurm should know it."""

    status: NodeStatus
    findings: tuple[Finding, ...]
    down: tuple[Service, ...] = ()
    is_node: bool = True

    @property
    def is_bad(self) -> bool:
        """Whether something is wrong, rather than only worth knowing."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


@dataclass(frozen=True)
class SiteStatus:
    """The hosts as they were ``at`` that time, in seconds since the epoch.

    ``leading``: who leads, where there are several controllers; ``drill``: the last one that left a report;
    ``database``: what its members say, where there are several.
    """

    at: float
    hosts: tuple[JudgedHost, ...]
    leading: Leading | None = None
    drill: LastDrill | None = None
    database: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unreachable(self) -> tuple[JudgedHost, ...]:
        """The hosts that could not be asked."""
        return tuple(host for host in self.hosts if host.status.reach is Reach.UNREACHABLE)

    @property
    def bad(self) -> tuple[JudgedHost, ...]:
        """The other hosts with something wrong."""
        return tuple(h for h in self.hosts if h.is_bad and h.status.reach is not Reach.UNREACHABLE)

    @property
    def exit_code(self) -> ExitCode:
        """What is wrong on a host that answers comes before hosts that do not."""
        if self.bad:
            return ExitCode.FAILED
        return ExitCode.UNREACHABLE if self.unreachable else ExitCode.OK


def site_status(
    site: Site,
    results: Mapping[str, HostResult],
    convergences: Mapping[str, Convergence],
    records: Mapping[str, HostState],
    departed: Iterable[Departed] = (),
    *,
    leading: Leading | None = None,
    database: Mapping[str, Any] = MappingProxyType({}),
    asked: Collection[str],
    away: Collection[str] = (),
    limit: Collection[str] | None,
    inventory: str,
    at: float,
) -> SiteStatus:
    """The judged hosts of ``limit`` (all without it), of ``asked`` with their ``results`` and ``records``.

    ``departed`` are hosts that left the inventory; ``inventory`` is how one would type it. A controller that
    was asked for the sake of the others appears when something is wrong with it. Those of ``away`` are
    switched off and were not asked.
    """
    told = [nodes for host in site.controllers if (nodes := slurm_nodes(results.get(host.name))) is not None]
    nodes = told[0] if told else {}
    compute = {host.name for host in site.nodes}
    judged = []
    for name in asked:
        status = replace(
            NodeStatus(name, Reach.POWERED_DOWN)
            if name in away
            else answer_of(name, results.get(name), site.hosts[name].address),
            slurm=nodes.get(name),
            convergence=convergences.get(name) or recorded_convergence(records.get(name)),
            record=records.get(name),
        )
        promise = _promise(site, name, inventory, leading, is_node=name in compute)
        if name in database:
            promise = replace(promise, among=(*promise.among, *member_troubles(name, database)))
        judge = Judge(status, promise, at, is_slurm_known=bool(told))
        host = JudgedHost(status, tuple(judge.findings()), judge.down(), promise.is_node)
        if limit is None or name in limit or host.is_bad:
            judged.append(host)
    if limit is None:
        judged += _strangers(site, nodes, departed, inventory)
    controllers = {host.name for host in site.controllers}
    judged.sort(key=lambda host: _rank(host, controllers))
    return SiteStatus(at, tuple(judged), leading, database=database)


def _promise(site: Site, name: str, inventory: str, leading: Leading | None, *, is_node: bool) -> Promise:
    is_led_by_another = leading is not None and leading.first == name and leading.leaders not in ([], [name])
    return Promise(
        again=f"deploy cluster {inventory} --limit {name}",
        check=f"deploy check {inventory} --limit {name}",
        preview=f"deploy plan {inventory} --limit {name}",
        resume=f"deploy node resume {inventory} {name}",
        repair=f"deploy node repair {inventory} {name}",
        controller=site.controller.name,
        is_node=is_node,
        optional=optional_units(),
        starts_slurmctld=f"deploy failback {inventory}" if is_led_by_another else "",
        among=tuple(leading.troubles(name)) if leading and name in leading.stands else (),
    )


def _strangers(
    site: Site, nodes: Mapping[str, SlurmNode], departed: Iterable[Departed], inventory: str
) -> list[JudgedHost]:
    """The hosts that the inventory has not: nodes that Slurm has, and those that left the cluster."""
    found: dict[str, list[Finding]] = {}
    known = {host.name for host in site.nodes}
    message = "Slurm has this node, the group slurm-node has not"
    hint = f"deploy cluster {inventory}   (takes it from Slurm)"
    for name in nodes.keys() - known:
        found[name] = [Finding(name, "node-not-in-inventory", message, hint)]
    for host in departed:
        if not host.is_gone:
            message = f"left the inventory, and still has: {', '.join(host.things)}"
            finding = Finding(host.name, "host-departed", message, host.hint(inventory))
            found.setdefault(host.name, []).append(finding)
    return [
        JudgedHost(
            NodeStatus(name, Reach.NOT_ASKED, slurm=nodes.get(name)),
            tuple(findings),
            is_node=name in nodes,
        )
        for name, findings in found.items()
    ]


def _rank(host: JudgedHost, controllers: Collection[str]) -> int:
    """A controller's trouble is everybody's; then who cannot be reached, is wrong, has warnings, is well."""
    if not host.findings:
        return 4
    if not host.is_bad:
        return 3
    if host.status.name in controllers:
        return 0
    return 1 if host.status.reach is Reach.UNREACHABLE else 2

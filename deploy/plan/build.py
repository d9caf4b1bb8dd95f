"""Site x catalog -> Plan: which phases run, on which hosts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from deploy.plan.catalog import PHASES, Phase
from deploy.site.hardware import Hardware
from deploy.site.inventory import Site


@dataclass(frozen=True)
class Step:
    """A phase and the names of the hosts it runs on."""

    phase: Phase
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The steps of a run, in order; a step without hosts is not there."""

    steps: tuple[Step, ...]
    is_limited: bool = False
    """Whether it leaves hosts out that the site has."""
    changed: frozenset[str] = frozenset()
    """Hosts that are not as they were recorded."""
    looked_at: frozenset[str] = frozenset()
    """Hosts that are checked, and nothing else."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host that takes part, each once."""
        return tuple(dict.fromkeys(host for step in self.steps for host in step.hosts))

    @property
    def checked(self) -> tuple[str, ...]:
        """The hosts that have more to do than to keep a list, or are not as they were recorded."""
        return tuple(
            dict.fromkeys(
                host
                for step in self.steps
                for host in step.hosts
                if not step.phase.follows_membership or host in self.changed
            )
            | dict.fromkeys(sorted(self.looked_at))
        )

    def only(self, hosts: Mapping[str, tuple[str, ...]]) -> "Plan":
        """Of this plan the phases of ``hosts``, on those hosts alone."""
        steps = (Step(step.phase, hosts.get(step.phase.name, ())) for step in self.steps)
        return replace(self, steps=tuple(step for step in steps if step.hosts))

    def without(self, hosts: Collection[str]) -> "Plan":
        """Of this plan what is done on other hosts; these are checked all the same."""
        steps = (
            replace(step, hosts=tuple(name for name in step.hosts if name not in hosts))
            for step in self.steps
        )
        checked = frozenset(name for name in self.checked if name in hosts)
        return replace(self, steps=tuple(step for step in steps if step.hosts), looked_at=checked)

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The generated groups with their hosts; phases that do not run are empty."""
        running = {step.phase.name: step.hosts for step in self.steps}
        return {phase.group: running.get(phase.name, ()) for phase in PHASES}


def build_plan(
    site: Site,
    contract: Mapping[str, Hardware] | None = None,
    *,
    limit: Collection[str] | None = None,
    converged: Mapping[str, Collection[str]] | None = None,
    changed: Collection[str] = (),
) -> Plan:
    """The plan for the whole site, or for the hosts of ``limit`` and what the cluster must learn of them.

    ``contract`` is what is known of the nodes' hardware, beside what the inventory says.
    ``converged`` are the phases, by host, that were verified and need not run, ``changed`` the hosts that
    others changed.
    """
    done = converged or {}
    steps = []
    for phase in PHASES:
        hosts = tuple(
            host.name
            for host in phase.members(site, contract or {})
            if limit is None or phase.cluster_wide or host.name in limit
        )
        due = tuple(name for name in hosts if phase.name not in done.get(name, ()))
        if due:
            steps.append(Step(phase, hosts if phase.together else due))
    return Plan(tuple(steps), is_limited=limit is not None, changed=frozenset(changed))

"""The phases of a cluster, in order: which roles, and which hosts of a site take part.

What a phase is, a role declares; here is only when it has its turn.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from deploy.plan.declarations import Declared, Step, phases
from deploy.plan.selectors import SELECTORS
from deploy.site.hardware import Hardware, has_gpus, is_discovered
from deploy.site.inventory import Host, Site

ORDER: tuple[str, ...] = (
    "proxy",
    "package_cache",
    "base",
    "firewall",
    "names",
    "directory",
    "nfs_server",
    "nfs_client",
    "network_mounts",
    "shared_directories",
    "scratch",
    "quotas",
    "database_arbiter",
    "database",
    "slurm_build",
    "packages",
    "tokens",
    "accounting",
    "registry",
    "node_health",
    "job_programs",
    "energy",
    "plugin_build",
    "plugin",
    "containers",
    "qos",
    "mail",
    "controller",
    "associations",
    "reservations",
    "account_groups",
    "budgets",
    "gpu",
    "mig",
    "gpu_modes",
    "cuda",
    "dcgm",
    "gpu_containers",
    "rdma",
    "compute",
    "login",
    "rest",
    "show_budget",
    "software",
    "module_files",
    "mpi",
    "apptainer",
    "conda",
    "software_tree",
    "ml_stack",
    "jupyter_servers",
    "portal",
    "log_server",
    "log_client",
    "ssh_server",
    "ssh_hosts",
    "job_logins",
    "user_limits",
    "user_logins",
    "message",
    "node_exporter",
    "gpu_exporter",
    "slurm_metrics",
    "mysqld_exporter",
    "probes",
    "monitoring",
    "grafana",
    "targets",
    "backup",
)
"""What has its turn first. Whether it is needed for what comes later, ``Phase.after`` says."""


@dataclass(frozen=True)
class Phase:
    """One play of playbooks/cluster.yml; its hosts are the members of the group ``phase_<name>``.

    A role declares it in ``meta/deploy.yml`` (see ``declarations``).
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    """The roles in turn."""
    tag: str
    """What ansible-playbook's --tags may call it, with others of its kind."""
    candidates: Callable[[Site], Iterable[Host]]
    """The hosts that the inventory says, whatever their hardware; who takes part, ``members`` says."""
    after: tuple[str, ...] = ()
    """Phases without which it cannot do its work: on the same host, or on all of their hosts where that one
    has no part in them. Not those that only happen to come before it."""
    after_everywhere: tuple[str, ...] = ()
    """Phases that all of their hosts must have gone through."""
    cluster_wide: bool = False
    """Whether a run limited to some hosts still needs this phase on its own hosts."""
    needs_contract: bool = False
    """Whether a host without a hardware contract must wait."""
    needs_gpus: bool = False
    """Whether only hosts take part that have GPUs by their hardware contract."""
    follows_membership: bool = False
    """Whether it is one task that keeps a list of the cluster's hosts in a file.

    It changes on all hosts with every new one. Where that is all there is to do, the rest was just verified:
    the host is not checked once more. And whether an interrupted run did it, the file itself says: no record
    has to be taken away before.
    """
    together: bool = False
    """Whether all of its hosts go through it where one of them has to: each needs the others there."""
    all_or_nobody: bool = False
    """Whether a host that fails ends the run for all others, before anything that comes after it."""

    @property
    def roles(self) -> tuple[str, ...]:
        """Its roles, each once."""
        return tuple(dict.fromkeys(step.role for step in self.steps))

    @property
    def group(self) -> str:
        """The generated inventory group that the play names."""
        return f"phase_{self.name}"

    def members(self, site: Site, contract: Mapping[str, Hardware]) -> list[Host]:
        """The hosts that take part, as far as their hardware is known: the one place that says who."""
        return [host for host in self.candidates(site) if self._fits(host, contract)]

    def _fits(self, host: Host, contract: Mapping[str, Hardware]) -> bool:
        if self.needs_gpus and not has_gpus(host, contract):
            return False
        return not self.needs_contract or is_discovered(host, contract)


def _phase(declared: Declared) -> Phase:
    return Phase(
        declared.name,
        declared.title,
        declared.steps,
        declared.tag,
        SELECTORS[declared.hosts],
        after=declared.after,
        after_everywhere=declared.after_everywhere,
        cluster_wide=declared.cluster_wide,
        needs_contract=declared.needs_contract,
        needs_gpus=declared.needs_gpus,
        follows_membership=declared.follows_membership,
        together=declared.together,
        all_or_nobody=declared.all_or_nobody,
    )


PHASES: tuple[Phase, ...] = tuple(
    _phase(declared) for declared in sorted(phases(), key=lambda declared: ORDER.index(declared.name))
)


@cache
def prerequisites(name: str) -> tuple[str, ...]:
    """The phases that one is after, and those that they are after, in the order of all."""
    direct = next(phase.after for phase in PHASES if phase.name == name)
    wanted = {*direct, *(further for phase in direct for further in prerequisites(phase))}
    return tuple(phase.name for phase in PHASES if phase.name in wanted)


def members(site: Site, contract: Mapping[str, Hardware], name: str) -> tuple[Host, ...]:
    """The hosts that take part in the phase of that name."""
    return tuple(next(phase for phase in PHASES if phase.name == name).members(site, contract))

"""The phases of a cluster, in order: which roles, and which hosts of a site take part."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from deploy.plan.gpu_wiring import (
    has_container_toolkit,
    has_cuda,
    has_dcgm,
    has_gpu_exporter,
    has_managed_gpus,
    has_mig,
)
from deploy.plan.monitoring_wiring import has_grafana
from deploy.site.hardware import Hardware, has_gpus, is_discovered
from deploy.site.inventory import CACHE, LOGS, NFS, RDMA, Host, Site
from deploy.site.storage import hosts_with_quotas, nfs_clients


@dataclass(frozen=True)
class Phase:
    """One play of playbooks/cluster.yml; its hosts are the members of the group ``phase_<name>``."""

    name: str
    title: str
    roles: tuple[str, ...]
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
    is_list: bool = False
    """Whether it is one task that keeps a list of the cluster's hosts in a file.

    It changes on all hosts with every new one. Where that is all there is to do, the rest was just verified:
    the host is not checked once more. And whether an interrupted run did it, the file itself says: no record
    has to be taken away before.
    """

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


def _slurm_hosts(site: Site) -> list[Host]:
    members = {host.name for hosts in (site.controllers, site.nodes, site.logins) for host in hosts}
    return [host for host in site.cluster if host.name in members]


def _pure_logins(site: Site) -> list[Host]:
    """Login nodes that have no slurm.conf of their own: neither controllers nor compute nodes."""
    others = {host.name for host in (*site.controllers, *site.nodes)}
    return [host for host in site.logins if host.name not in others]


def _closed(site: Site) -> list[Host]:
    """All but login nodes: people come to compute nodes for their jobs alone, and to others not at all."""
    logins = {host.name for host in site.logins}
    return [host for host in site.cluster if host.name not in logins]


def _opened(site: Site) -> list[Host]:
    """Those among them that the site opens to everybody all the same."""
    return [host for host in _closed(site) if host.variables.get("job_ssh_admits") == "everyone"]


def _mpi_hosts(site: Site) -> list[Host]:
    return [host for host in _slurm_hosts(site) if host.variables.get("openmpi_packages")]


def _users_hosts(site: Site, variable: str) -> list[Host]:
    """Where users work and the site sets a variable; the controller need not mount what they use."""
    users = {host.name for host in (*site.nodes, *site.logins)}
    return [host for host in site.cluster if host.name in users and host.variables.get(variable)]


def _walled(site: Site) -> list[Host]:
    """Hosts for which the admin said who may reach them: without that nobody could know whom to let in."""
    return [host for host in site.cluster if "firewall_admin_networks" in host.variables]


def _senders_of_logs(site: Site) -> list[Host]:
    """All, where some host keeps the logs: it is sent its own like those of others."""
    return list(site.cluster) if site.group(LOGS) else []


def _behind_a_proxy(site: Site) -> list[Host]:
    """Hosts with a proxy or a cache of packages, or with an empty one, which takes its settings away."""
    if CACHE in site.groups:
        return list(site.cluster)
    return [host for host in site.cluster if {"proxy_http", "proxy_https"} & host.variables.keys()]


def _declared(is_declared: Callable[[Host], bool]) -> Callable[[Site], list[Host]]:
    """The hosts for which the site declares something."""
    return lambda site: [host for host in site.cluster if is_declared(host)]


def _spank_hosts(site: Site) -> list[Host]:
    """Where the plugin for containers has to be: everywhere that Slurm is, once a host offers containers."""
    return _slurm_hosts(site) if site.containers else []


def _portals(site: Site) -> list[Host]:
    return [host for host in site.metrics if has_grafana(host)]


def _watched(site: Site) -> Iterable[Host]:
    return site.cluster if site.metrics else ()


def _watched_gpus(site: Site) -> list[Host]:
    return [host for host in site.nodes if has_gpu_exporter(site, host)]


PHASES: tuple[Phase, ...] = (
    Phase("proxy", "Proxy", ("proxy",), _behind_a_proxy),
    # Before the transaction in which all others install their packages.
    Phase(
        "package_cache",
        "Package cache",
        ("bootstrap", "package_cache"),
        lambda site: site.group(CACHE),
        after=("proxy",),
    ),
    Phase(
        "base",
        "Base system",
        ("bootstrap", "time_sync", "users", "user_environment"),
        lambda site: site.cluster,
        after=("proxy",),
    ),
    Phase("names", "Names", ("hosts_file",), lambda site: site.cluster, is_list=True),
    # Cluster-wide: a server learns of a new client before that mounts anything.
    Phase(
        "nfs_server",
        "NFS server",
        ("nfs_server",),
        lambda site: site.group(NFS),
        cluster_wide=True,
        after=("base", "names"),
    ),
    Phase("nfs_client", "NFS clients", ("nfs_client",), nfs_clients, after=("base", "names", "nfs_server")),
    Phase(
        "network_mounts",
        "Network file systems",
        ("network_mounts",),
        lambda site: [host for host in site.cluster if "network_mounts_filesystems" in host.variables],
        after=("base", "names"),
    ),
    Phase("scratch", "Job scratch", ("scratch",), lambda site: site.nodes, after=("base", "network_mounts")),
    Phase(
        "quotas",
        "Quotas",
        ("quotas",),
        hosts_with_quotas,
        after=("nfs_server", "nfs_client", "network_mounts", "scratch"),
    ),
    # Before others, which have their turn while it starts.
    Phase("database", "Database", ("mariadb",), lambda site: site.database_hosts, after=("base",)),
    Phase(
        "packages",
        "Slurm packages and authentication",
        ("slurm_packages", "munge"),
        _slurm_hosts,
        after=("base",),
    ),
    Phase(
        "accounting",
        "Accounting",
        ("mariadb", "slurmdbd"),
        lambda site: site.accounting_hosts,
        after=("database", "packages"),
    ),
    # Before Slurm's daemons: slurmd runs the check before it registers.
    Phase(
        "node_health",
        "Node health",
        ("node_health",),
        lambda site: site.nodes,
        needs_contract=True,
        after=("packages",),
    ),
    Phase(
        "plugin_build",
        "Plugin for containers",
        ("pyxis",),
        lambda site: (site.controller,) if site.containers else (),
        cluster_wide=True,
        after=("packages",),
    ),
    Phase(
        "plugin",
        "Plugin for containers, everywhere",
        ("pyxis",),
        _spank_hosts,
        after=("packages", "plugin_build"),
    ),
    Phase("containers", "Containers", ("enroot",), lambda site: site.containers, after=("base", "scratch")),
    Phase(
        "qos",
        "QOS",
        ("slurmdbd", "slurm_accounts"),
        lambda site: site.accounting_hosts,
        after=("accounting",),
    ),
    Phase(
        "controller",
        "Controller",
        ("slurmctld", "slurm_accounts"),
        lambda site: site.controllers,
        cluster_wide=True,
        after=("names", "qos"),
        after_everywhere=("plugin",),
    ),
    # The controller comes first, because it drains a node that has to reboot.
    Phase(
        "gpu",
        "GPUs",
        ("nvidia_repository", "nvidia_driver", "reboot"),
        _declared(has_managed_gpus),
        after=("controller",),
    ),
    Phase("mig", "Divided GPUs", ("mig", "reboot"), _declared(has_mig), after=("gpu",)),
    Phase("cuda", "CUDA", ("nvidia_repository", "cuda_toolkit"), _declared(has_cuda), after=("gpu",)),
    Phase("dcgm", "GPU manager", ("nvidia_repository", "dcgm"), _declared(has_dcgm), after=("gpu",)),
    Phase(
        "gpu_containers",
        "GPUs in containers",
        ("nvidia_repository", "container_toolkit"),
        _declared(has_container_toolkit),
        after=("gpu", "containers"),
    ),
    Phase(
        "rdma",
        "RDMA",
        ("rdma",),
        lambda site: [host for host in site.cluster if RDMA in host.groups],
        after=("base",),
    ),
    Phase(
        "compute",
        "Compute nodes",
        ("slurmd",),
        lambda site: site.nodes,
        needs_contract=True,
        after=("names", "controller", "node_health", "nfs_client", "scratch", "plugin", "mig"),
    ),
    Phase("login", "Login nodes", ("slurm_client",), _pure_logins, after=("names", "controller", "plugin")),
    Phase(
        "software",
        "Software for users",
        ("environment_modules",),
        _slurm_hosts,
        after=("base", "nfs_client", "network_mounts"),
    ),
    Phase("mpi", "MPI", ("openmpi",), _mpi_hosts, after=("packages", "software")),
    Phase(
        "apptainer",
        "Apptainer",
        ("apptainer",),
        lambda site: _users_hosts(site, "apptainer_version"),
        after=("base",),
    ),
    Phase(
        "ml_stack",
        "Python environments",
        ("ml_stack",),
        lambda site: _users_hosts(site, "ml_stack_environments"),
        after=("software",),
    ),
    Phase("log_server", "Log server", ("log_server",), lambda site: site.group(LOGS)[:1], after=("base",)),
    Phase("log_client", "Logs of all hosts", ("log_client",), _senders_of_logs, after=("log_server",)),
    Phase("ssh_server", "Ssh server", ("ssh_server",), lambda site: site.cluster, after=("base",)),
    Phase("firewall", "Firewall", ("firewall",), _walled, cluster_wide=True, after=("base",)),
    # Login nodes, too: one that was none before lets everybody in again.
    Phase(
        "job_logins", "Who may log in", ("job_ssh",), lambda site: site.cluster, after=("base", "packages")
    ),
    Phase("user_limits", "Limits of users on other hosts", ("login_limits",), _opened, after=("base",)),
    Phase(
        "user_logins",
        "Logins on login nodes",
        ("login_limits", "motd"),
        lambda site: site.logins,
        after=("base",),
    ),
    Phase(
        "node_exporter", "Numbers of hosts", ("node_exporter", "deploy_metrics"), _watched, after=("base",)
    ),
    Phase(
        "gpu_exporter",
        "Numbers of GPUs",
        ("nvidia_repository", "gpu_exporter"),
        _watched_gpus,
        needs_gpus=True,
        after=("gpu",),
    ),
    Phase(
        "slurm_metrics",
        "Numbers of Slurm",
        ("slurm_metrics",),
        lambda site: (site.controller,) if site.metrics else (),
        after=("controller",),
    ),
    Phase(
        "mysqld_exporter",
        "Numbers of the database",
        ("mysqld_exporter",),
        lambda site: site.database_hosts if site.metrics else (),
        after=("database",),
    ),
    Phase("probes", "Probes of services", ("blackbox_exporter",), lambda site: site.metrics, after=("base",)),
    Phase(
        "monitoring", "Monitoring", ("alertmanager", "prometheus"), lambda site: site.metrics, after=("base",)
    ),
    Phase("grafana", "Dashboards", ("grafana",), _portals, after=("monitoring",)),
    # By itself and cluster-wide: a new host concerns no other part of the monitoring.
    Phase(
        "targets",
        "Scrape targets",
        ("scrape_targets",),
        lambda site: site.metrics,
        cluster_wide=True,
        after=("monitoring",),
    ),
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

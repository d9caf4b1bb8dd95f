"""Who takes part in a phase: names that declarations use, and the hosts of a site that they mean.

Hosts by what the inventory says, whatever their hardware.
"""

from collections.abc import Callable, Iterable, Mapping

from deploy.plan.directory_vars import has_directory
from deploy.plan.gpu_vars import (
    has_container_toolkit,
    has_cuda,
    has_dcgm,
    has_gpu_exporter,
    has_managed_gpus,
    has_mig,
)
from deploy.plan.job_program_vars import job_program_nodes
from deploy.plan.slurm_source import slurm_builder
from deploy.site.accounting import accounts_of_groups, has_budgets
from deploy.site.energy import energy_hosts
from deploy.site.inventory import CACHE, LOGS, NFS, PORTAL, RDMA, REGISTRY, REST, Host, Site
from deploy.site.storage import hosts_with_quotas, nfs_clients

Selector = Callable[[Site], Iterable[Host]]


def slurm_hosts(site: Site) -> list[Host]:
    """Controllers, the accounting daemon's host, compute nodes and login nodes."""
    groups = (site.controllers, site.accounting_hosts, site.nodes, site.logins)
    members = {host.name for hosts in groups for host in hosts}
    return [host for host in site.cluster if host.name in members]


def has_grafana(host: Host) -> bool:
    """Whether a host that watches has Grafana, too."""
    return bool(host.value("grafana_source") != "none")


def _pure_logins(site: Site) -> list[Host]:
    """Login nodes that have no slurm.conf of their own: neither controllers nor compute nodes."""
    others = {host.name for host in (*site.controllers, *site.nodes)}
    return [host for host in site.logins if host.name not in others]


def _opened(site: Site) -> list[Host]:
    """Hosts that are no login nodes, and that the site opens to everybody all the same.

    People come to compute nodes for their jobs alone, and to others not at all.
    """
    logins = {host.name for host in site.logins}
    closed = [host for host in site.cluster if host.name not in logins]
    return [host for host in closed if host.variables.get("job_ssh_admits") == "everyone"]


def _proxied(site: Site) -> list[Host]:
    """Hosts with a proxy or a cache of packages, or with an empty one, which takes its settings away."""
    if CACHE in site.groups:
        return list(site.cluster)
    return [host for host in site.cluster if {"proxy_http", "proxy_https"} & host.variables.keys()]


def _declaring(variable: str) -> Selector:
    """The hosts for which the inventory sets a variable, be it to nothing."""
    return lambda site: [host for host in site.cluster if variable in host.variables]


def _has_budgets(site: Site) -> bool:
    return any(has_budgets(host) for host in (*site.controllers, *site.accounting_hosts))


def _showing_budgets(site: Site) -> list[Host]:
    """Where people ask for them: the portal does for whoever looks at it."""
    portals = [host for host in site.group(PORTAL)[:1] if host not in site.logins]
    return [*site.logins, *portals] if _has_budgets(site) else []


def _having(is_so: Callable[[Host], bool]) -> Selector:
    return lambda site: [host for host in site.cluster if is_so(host)]


def _of_users(variable: str) -> Selector:
    """Where users work and the site sets a variable; the controller need not mount what they use."""

    def select(site: Site) -> list[Host]:
        users = {host.name for host in (*site.nodes, *site.logins)}
        return [host for host in site.cluster if host.name in users and host.variables.get(variable)]

    return select


def _judging_tokens(site: Site) -> list[Host]:
    """The hosts of slurmctld, which makes tokens, and of slurmdbd, which takes them, too."""
    names = {host.name for host in (*site.controllers, *site.accounting_hosts)}
    return [host for host in site.cluster if host.name in names] if site.group(REST) else []


def _making_shared_directories(site: Site) -> list[Host]:
    """The one host that makes them: storage may refuse root of its clients, so its server comes first."""
    hosts = (*site.group(NFS), *site.logins, *site.cluster)
    return [host for host in hosts if host.variables.get("shared_directories_paths")][:1]


SELECTORS: Mapping[str, Selector] = {
    "cluster": lambda site: site.cluster,
    "controllers": lambda site: site.controllers,
    "nodes": lambda site: site.nodes,
    "logins": lambda site: site.logins,
    "pure_logins": _pure_logins,
    "slurm": slurm_hosts,
    "slurm_builder": slurm_builder,
    "accounting": lambda site: site.accounting_hosts,
    "leading_accounting": lambda site: site.accounting_lead,
    "with_account_groups": lambda site: [host for host in site.accounting_lead if accounts_of_groups(host)],
    "with_budgets": lambda site: site.controllers if _has_budgets(site) else (),
    "budget_logins": _showing_budgets,
    "database": lambda site: site.database_hosts,
    "database_arbiter": lambda site: [host for host in (site.database_arbiter,) if host],
    "containers": lambda site: site.containers,
    "plugin_builder": lambda site: (site.controller,) if site.containers else (),
    # Everywhere that Slurm is, once a host offers containers.
    "plugin_hosts": lambda site: slurm_hosts(site) if site.containers else (),
    "with_job_programs": job_program_nodes,
    "with_energy": energy_hosts,
    "trusting_nodes": lambda site: [host for host in site.nodes if host.value("ssh_server_host_based")],
    "with_managed_gpus": _having(has_managed_gpus),
    "with_mig": _having(has_mig),
    # Also where it is the default, which ends what was set.
    "with_gpu_modes": lambda site: [host for host in site.nodes if "gpu_modes_compute" in host.variables],
    "with_cuda": _having(has_cuda),
    "with_dcgm": _having(has_dcgm),
    "with_container_toolkit": _having(has_container_toolkit),
    "with_mail_relay": lambda site: [
        host for host in site.controllers if host.variables.get("mail_relay_host")
    ],
    # Also where it is empty, which ends what was there.
    "with_backups": lambda site: [
        host for host in site.controllers if host == site.controller and "backup_schedule" in host.variables
    ],
    "with_mpi": lambda site: [host for host in slurm_hosts(site) if host.variables.get("openmpi_packages")],
    "with_apptainer": _of_users("apptainer_version"),
    # Also where it is empty, which takes away what was there.
    "with_module_files": lambda site: [
        host for host in slurm_hosts(site) if "environment_modules_software" in host.variables
    ],
    "with_conda": _of_users("conda_version"),
    "with_shared_directories": _making_shared_directories,
    "with_software_tree": lambda site: [
        host for host in site.logins if host.variables.get("software_tree_directory")
    ],
    "with_ml_stack": _of_users("ml_stack_environments"),
    "rdma": _having(lambda host: RDMA in host.groups),
    "proxied": _proxied,
    "package_caches": lambda site: site.group(CACHE),
    "nfs_servers": lambda site: site.group(NFS),
    "nfs_clients": nfs_clients,
    "with_directory": _having(has_directory),
    "with_network_mounts": _declaring("network_mounts_filesystems"),
    "with_quotas": hosts_with_quotas,
    "portal": lambda site: site.group(PORTAL)[:1],
    "portal_nodes": lambda site: site.nodes if site.group(PORTAL) else (),
    "registry": lambda site: site.group(REGISTRY)[:1],
    "rest": lambda site: site.group(REST),
    "with_tokens": _judging_tokens,
    "log_server": lambda site: site.group(LOGS)[:1],
    # All, where some host keeps the logs: it is sent its own like those of others.
    "log_senders": lambda site: site.cluster if site.group(LOGS) else (),
    # Hosts for which the admin said who may reach them: without that nobody could know whom to let in.
    "walled": _declaring("firewall_admin_networks"),
    "opened": _opened,
    "watchers": lambda site: site.metrics,
    "with_grafana": lambda site: [host for host in site.metrics if has_grafana(host)],
    "watched": lambda site: site.cluster if site.metrics else (),
    "watched_gpus": lambda site: [host for host in site.nodes if has_gpu_exporter(site, host)],
    "watched_controller": lambda site: (site.controller,) if site.metrics else (),
    "watched_databases": lambda site: site.database_hosts if site.metrics else (),
}

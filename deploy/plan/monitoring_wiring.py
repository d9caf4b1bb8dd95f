"""What the roles of the monitoring must know of the whole site: whom to ask, and where to listen."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deploy.plan.access_wiring import ssh_port
from deploy.plan.gpu_wiring import has_gpu_exporter
from deploy.plan.slurm_ports import first_slurm_port
from deploy.site.addresses import is_ip
from deploy.site.hardware import Hardware, has_gpus
from deploy.site.inventory import Host, Site

Variables = dict[str, Any]
Members = Mapping[str, Collection[str]]
"""The names of the hosts of every phase."""


@dataclass(frozen=True)
class _Job:
    """A scrape job: the phase whose hosts are asked, and the role whose port that is."""

    name: str
    phase: str
    role: str


DATABASE_ACCOUNT: Variables = {"name": "prometheus", "privileges": "*.*:PROCESS,BINLOG MONITOR,SLAVE MONITOR"}
"""The exporter's account of the database: without a password, so by its socket alone; it sees no data."""

_JOBS = (
    _Job("node", "node_exporter", "node_exporter"),
    _Job("gpu", "gpu_exporter", "gpu_exporter"),
    _Job("slurm", "slurm_metrics", "slurm_metrics"),
    _Job("mysqld", "mysqld_exporter", "mysqld_exporter"),
    _Job("prometheus", "monitoring", "prometheus"),
    _Job("alertmanager", "monitoring", "alertmanager"),
)
_PORTALS = ("alertmanager", "blackbox_exporter", "grafana", "prometheus")
"""The roles of the host that watches whose daemons listen."""
_PAGES = frozenset(_PORTALS) - {"blackbox_exporter"}
"""Those that people open."""
_OPEN_PAGES = frozenset({"alertmanager", "prometheus"})
"""Those among them that show and do everything for everybody."""
_LOOPBACK = "127.0.0.1"


def listening_roles(site: Site, host: Host, contract: Mapping[str, Hardware]) -> list[str]:
    """The roles of the monitoring whose daemons listen on a host; each has a variable with its port."""
    if not site.metrics:
        return []
    roles = ["node_exporter"]
    roles += ["gpu_exporter"] if has_gpu_exporter(site, host) and has_gpus(host, contract) else []
    roles += ["slurm_metrics"] if host == site.controller else []
    roles += ["mysqld_exporter"] if host in site.database_hosts else []
    if host in site.metrics:
        roles += _PORTALS if has_grafana(host) else [role for role in _PORTALS if role != "grafana"]
    return roles


def has_grafana(host: Host) -> bool:
    """Whether a host that watches has Grafana, too."""
    return bool(host.value("grafana_source") != "none")


def monitoring_variables(site: Site, host: Host, contract: Mapping[str, Hardware], cluster: str) -> Variables:
    """The variables of one host; ``cluster`` is the cluster's name."""
    if not site.metrics:
        return {}
    listening = listening_roles(site, host, contract)
    # A host that is known by name alone has its address from elsewhere.
    address = host.cluster_address if is_ip(host.cluster_address) else ""
    wired: Variables = {f"{role}_listen_address": address for role in listening}
    wired |= {
        f"{role}_listen_address": _page_address(host, role, address) for role in _OPEN_PAGES & {*listening}
    }
    wired["firewall_guarded"] = [{"ports": _ports(host, listening), "from": _watching(site)}]
    wired["firewall_pages"] = _ports(host, [role for role in listening if role in _PAGES])
    if host in site.metrics:
        wired["prometheus_alertmanagers"] = [_page(host, "alertmanager")]
        wired["grafana_prometheus_url"] = f"http://{_page(host, 'prometheus')}"
        wired["prometheus_cluster"] = cluster
        wired |= {"prometheus_packages": []} if host.value("prometheus_release") else {}
    return wired


def _page_address(host: Host, role: str, address: str) -> str:
    """Where a page listens that asks nobody who they are: on its own host alone, unless something guards it.

    A firewall does, or accounts that the site gives it; and the site may say where it listens.
    """
    if f"{role}_listen_address" in host.variables:
        return str(host.variables[f"{role}_listen_address"])
    web = host.variables.get(f"{role}_web")
    has_accounts = bool(web) and (not isinstance(web, Mapping) or "basic_auth_users" in web)
    return address if has_accounts or "firewall_admin_networks" in host.variables else _LOOPBACK


def _page(host: Host, role: str) -> str:
    """Where programs on the host that watches ask a page."""
    port = host.value(f"{role}_port")
    return f"{_LOOPBACK}:{port}" if _page_address(host, role, "") == _LOOPBACK else host.place(port)


def _ports(host: Host, listening: Iterable[str]) -> list[str]:
    return [str(host.value(f"{role}_port")) for role in listening]


def _watching(site: Site) -> list[str]:
    """The addresses that Prometheus asks from."""
    texts = {text for host in site.metrics for text in (host.address, host.cluster_address)}
    return sorted(filter(is_ip, texts))


def scrape_targets(site: Site, members: Members) -> Variables:
    """Whom Prometheus asks, by job, in the words of its file_sd_config; jobs without hosts are left out."""
    targets = {
        job.name: [
            _target(host, place)
            for host in site.cluster
            if host.name in members.get(job.phase, ()) and (place := _asked_at(site, host, job))
        ]
        for job in _JOBS
    }
    targets["blackbox"] = list(_probes(site, members))
    return {"scrape_targets_jobs": {job: found for job, found in targets.items() if found}}


def _asked_at(site: Site, host: Host, job: _Job) -> str:
    """The place of a job's target; none of a page that only its own host reaches, where several hosts ask."""
    if job.role not in _OPEN_PAGES:
        return host.place(host.value(f"{job.role}_port"))
    place = _page(host, job.role)
    return "" if place.startswith(_LOOPBACK) and len(site.metrics) > 1 else place


def _probes(site: Site, members: Members) -> Iterator[Variables]:
    """What the blackbox exporter asks: the services that people and hosts of the cluster come to."""
    for watcher in site.metrics:
        exporter = watcher.place(watcher.value("blackbox_exporter_port"))
        for host, module, service, place in _services(site, members):
            labels = {"service": service, "__param_module": module, "__exporter": exporter}
            yield _target(host, place, **labels)


def _services(site: Site, members: Members) -> Iterator[tuple[Host, str, str, str]]:
    """Host, way to ask, name and place of each service."""
    for host in site.logins:
        yield host, "ssh", "ssh", host.place(ssh_port(host))
    for host in site.controllers:
        yield host, "connect", "slurmctld", host.place(first_slurm_port(site, "SlurmctldPort"))
    for host in site.accounting_hosts:
        yield host, "connect", "slurmdbd", host.place(host.value("slurmdbd_port"))
    for host in site.metrics:
        if host.name in members["grafana"]:
            scheme = "https" if host.value("grafana_certificate") else "http"
            yield host, "http", "grafana", f"{scheme}://{host.place(host.value('grafana_port'))}/api/health"


def _target(host: Host, place: str, **labels: str) -> Variables:
    """One target: people know hosts by their names, so these stand where addresses would."""
    return {"targets": [place], "labels": {"instance": host.name, **labels}}

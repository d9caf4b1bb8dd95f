"""What the roles of the monitoring must know of the whole site: whom to ask, and where to listen."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deploy.plan.access_vars import ssh_port, trusted_addresses
from deploy.plan.declarations import Listening, listening
from deploy.plan.listening import Members, jobs
from deploy.plan.slurm_ports import first_slurm_port
from deploy.site.addresses import is_ip
from deploy.site.inventory import PORTAL, REGISTRY, REST, Host, Site

Variables = dict[str, Any]

DATABASE_ACCOUNT: Variables = {"name": "prometheus", "privileges": "*.*:PROCESS,BINLOG MONITOR,SLAVE MONITOR"}
"""The exporter's account of the database: without a password, so by its socket alone; it sees no data."""

_PROBES = "blackbox"
"""The job that asks other services through the blackbox exporter."""
_LOOPBACK = "127.0.0.1"


def monitoring_variables(site: Site, host: Host, listeners: Iterable[str], cluster: str) -> Variables:
    """The variables of one host, with the roles that listen there; ``cluster`` is the cluster's name."""
    if not site.metrics:
        return {}
    watched = {role: said for role in listeners if (said := listening(role)) and said.is_watched}
    wired: Variables = {
        f"{role}_listen_address": _address(host, role, said) for role, said in watched.items()
    }
    wired["firewall_guarded"] = [{"ports": _ports(host, watched), "from": _watching(site)}]
    wired["firewall_pages"] = _ports(host, [role for role, said in watched.items() if said.is_page])
    if host in site.metrics:
        wired["prometheus_alertmanagers"] = [_page(host, "alertmanager")]
        wired["grafana_prometheus_url"] = f"{_scheme(host)}://{_page(host, 'prometheus')}"
        wired["prometheus_cluster"] = cluster
        wired["prometheus_jobs"] = sorted([*jobs(), _PROBES])
        wired |= {"prometheus_packages": []} if host.value("prometheus_release") else {}
    return wired


def _address(host: Host, role: str, said: Listening) -> str:
    # A host that is known by name alone has its address from elsewhere.
    address = host.cluster_address if is_ip(host.cluster_address) else ""
    return _page_address(host, role, address) if said.asks_nobody else address


def _page_address(host: Host, role: str, address: str) -> str:
    """Where that listens which asks nobody who they are: on its own host alone, unless something guards it.

    A firewall does, or accounts that the site gives it; and the site may say where it listens.
    """
    if f"{role}_listen_address" in host.variables:
        return str(host.variables[f"{role}_listen_address"])
    web = host.variables.get(f"{role}_web")
    has_accounts = bool(web.get("basic_auth_users") if isinstance(web, Mapping) else web)
    return address if has_accounts or "firewall_admin_networks" in host.variables else _LOOPBACK


def _page(host: Host, role: str) -> str:
    """Where programs on the host that watches ask what asks nobody who they are."""
    port = host.value(f"{role}_port")
    return f"{_LOOPBACK}:{port}" if _page_address(host, role, "") == _LOOPBACK else host.place(port)


def _scheme(host: Host) -> str:
    """How Prometheus is asked: by TLS where the site gives its page a certificate."""
    web = host.value("prometheus_web")
    if isinstance(web, Mapping):
        return "https" if web.get("tls_server_config") else "http"
    return "{{ 'https' if prometheus_web.tls_server_config | default({}) else 'http' }}"


def prometheus_from(site: Site, asking: Host) -> str:
    """Where the host that watches asks Prometheus itself; others would need a way for all of their users."""
    if asking not in site.metrics[:1] or asking.variables.get("prometheus_web"):
        return ""
    return f"http://{_page(asking, 'prometheus')}"


def _ports(host: Host, listening: Iterable[str]) -> list[str]:
    return [str(host.value(f"{role}_port")) for role in listening]


def _watching(site: Site) -> list[str]:
    """The addresses that Prometheus asks from."""
    return trusted_addresses(site.metrics)


def scrape_targets(site: Site, members: Members) -> Variables:
    """Whom Prometheus asks, by job, in the words of its file_sd_config; jobs without hosts are left out."""
    targets = {
        job: [
            _target(host, place)
            for host in site.cluster
            if host.name in members[phase] and (place := _asked_at(site, host, role))
        ]
        for job, (phase, role) in jobs().items()
    }
    targets[_PROBES] = list(_probes(site, members))
    return {"scrape_targets_jobs": {job: found for job, found in targets.items() if found}}


def _asked_at(site: Site, host: Host, role: str) -> str:
    """The place of a job's target; none of a page that only its own host reaches, where several hosts ask."""
    said = listening(role)
    if not (said and said.asks_nobody):
        return host.place(host.value(f"{role}_port"))
    place = _page(host, role)
    return "" if place.startswith(_LOOPBACK) and len(site.metrics) > 1 else place


def _probes(site: Site, members: Members) -> Iterator[Variables]:
    """What the blackbox exporter asks: the services that people and hosts of the cluster come to."""
    for watcher in site.metrics:
        exporter = _page(watcher, "blackbox_exporter")
        for host, module, service, place in _services(site, members):
            labels = {"service": service, "__param_module": module, "__exporter": exporter}
            yield _target(host, place, **labels)


def _services(site: Site, members: Members) -> Iterator[tuple[Host, str, str, str]]:
    """Host, way to ask, name and place of each service."""
    for host in site.logins:
        yield host, "ssh", "ssh", host.place(ssh_port(host))
    for host in site.controllers:
        yield host, "connect", "slurmctld", host.place(first_slurm_port(site, "SlurmctldPort"))
    for host in site.accounting_lead:
        yield host, "connect", "slurmdbd", host.place(host.value("slurmdbd_port"))
    for host in site.metrics:
        if host.name in members["grafana"]:
            scheme = "https" if host.value("grafana_certificate") else "http"
            yield host, "http", "grafana", f"{scheme}://{host.place(host.value('grafana_port'))}/api/health"

    for host in site.group(PORTAL)[:1]:
        # Through the proxy, which is all that users reach.
        yield host, "http", "portal", f"https://{host.place(host.value('slurm_portal_port'))}/hub/health"
    for host in site.group(REGISTRY)[:1]:
        yield host, "http", "registry", f"https://{host.place(host.value('slurm_registry_port'))}/health"
    for host in site.group(REST):
        yield host, "http", "rest", f"https://{host.place(host.value('slurm_rest_port'))}/health"


def _target(host: Host, place: str, **labels: str) -> Variables:
    """One target: people know hosts by their names, so these stand where addresses would."""
    return {"targets": [place], "labels": {"instance": host.name, **labels}}

"""What the role of the portal must know of the whole site: its own names, and the environments on nodes."""

from typing import Any

from deploy.plan.monitoring_vars import prometheus_from
from deploy.plan.validation_vars import validation_user
from deploy.site.addresses import is_ip
from deploy.site.inventory import PORTAL, Host, Site

Variables = dict[str, Any]


def portal_variables(site: Site, host: Host) -> Variables:
    """The variables of one host; none where the portal is not."""
    if host not in site.group(PORTAL)[:1]:
        return {}
    url = prometheus_from(site, host)
    return {
        "slurm_portal_host": host.name,
        "slurm_portal_address": host.cluster_address if is_ip(host.cluster_address) else "",
        "slurm_portal_validation_user": validation_user(site) or "",
        "slurm_portal_environments": [_environment(each) for each in _ml_stack(site)],
    } | (
        {"slurm_portal_prometheus_url": url} if url and not host.value("slurm_portal_prometheus_url") else {}
    )


def _ml_stack(site: Site) -> list[Variables]:
    """The Python environments that all nodes have."""
    found = [host.variables.get("ml_stack_environments") or [] for host in site.nodes]
    return [each for each in found[0] if all(each in other for other in found)] if found else []


def _environment(declared: Variables) -> Variables:
    module = f"{declared['name']}/{declared['version']}"
    return {"name": module.replace("/", "-"), "title": module, "modules": [module]}

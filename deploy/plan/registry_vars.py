"""What the registry of images and those who pull from it must know of the whole site."""

from typing import Any

from deploy.plan.access_vars import direct
from deploy.site.addresses import is_ip
from deploy.site.inventory import REGISTRY, Host, Site

Variables = dict[str, Any]

_IDENTITY = "{{ (slurm_registry_key | registry_identity(%s)).certificate }}"


def registry_variables(site: Site, host: Host, networks: list[str]) -> Variables:
    """Of the registry's host; none elsewhere. The ``networks`` are the cluster's."""
    if host not in site.group(REGISTRY)[:1]:
        return {}
    metrics = str(host.value("deploy_metrics_textfile_directory")) if site.metrics else ""
    # Names, not values: a proxy's URL may have a password in it.
    proxies = [name for name in ("proxy_https", "proxy_http") if name in host.variables]
    return {
        "slurm_registry_names": certified_names(host),
        "slurm_registry_textfile_directory": metrics,
        "slurm_registry_upstream_proxy": f"{{{{ {' or '.join(proxies)} }}}}" if proxies else "",
        "slurm_registry_no_proxy": _without_proxy(site, host, networks) if proxies else [],
    }


def _without_proxy(site: Site, host: Host, networks: list[str]) -> str | list[str]:
    """What is reached without the proxy: the cluster, and what the site names.

    A cache on a compute node is none; without their names it is not restarted for each new one.
    """
    nodes = {node.name for node in site.nodes}
    known = [name for name in direct(site, networks) if name not in nodes]
    return f"{{{{ {known} + proxy_no_proxy }}}}" if "proxy_no_proxy" in host.variables else known


def pulling(site: Site) -> Variables:
    """Of the hosts that offer containers: where images are, whom to trust for that, what is cached there."""
    for host in site.group(REGISTRY)[:1]:
        own = host.value("slurm_registry_certificate")
        return {
            "enroot_registry": registry_place(host),
            "enroot_registry_ca": host.value("slurm_registry_ca")
            if own
            else _IDENTITY % certified_names(host),
            "enroot_registry_upstreams": [each["name"] for each in host.value("slurm_registry_upstreams")],
        }
    return {}


def registry_place(host: Host) -> str:
    """How images name the registry."""
    return f"{host.name}:{host.value('slurm_registry_port')}"


def certified_names(host: Host) -> list[str]:
    """What a service's own certificate is for: its name, in full and in short, and its addresses."""
    short = "" if is_ip(host.name) else host.name.partition(".")[0]
    names = (host.name, short, host.address, host.cluster_address)
    return sorted({name for name in names if name and "{{" not in name})

"""Where packages come from in a site with a cache: each cache, and those who ask it."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from deploy.site.addresses import is_ip
from deploy.site.inventory import CACHE, Host, Site

Variables = dict[str, Any]

_HTTP = 80
_ARCHIVES = (
    *("bootstrap_archive", "grafana_repository_uri"),
    *("nvidia_repository_cuda_uri", "nvidia_repository_container_uri"),
)


def caches(site: Site) -> list[str]:
    """The caches that all hosts ask, in order."""
    return [f"http://{host.place(host.value('package_cache_port'))}" for host in site.group(CACHE)]


def cache_of(site: Site, host: Host) -> Variables:
    """Variables of a host that keeps packages."""
    if host not in site.group(CACHE):
        return {}
    return {
        # A host that is known by name alone has its address from elsewhere.
        "package_cache_listen_address": host.cluster_address if is_ip(host.cluster_address) else "",
        "package_cache_ports": _ports(site),
        # Not its value: a proxy's URL may have a password in it.
        "package_cache_upstream_proxy": "{{ proxy_http }}" if "proxy_http" in host.variables else "",
    }


def _ports(site: Site) -> list[int]:
    """The ports of the archives that the site names."""
    ports = {_HTTP}
    for text in _archives(site):
        try:
            url = urlsplit(text)
            ports |= {url.port} if url.scheme == "http" and url.port else set()
        except ValueError:  # a template, which only the run knows
            continue
    return sorted(ports)


def _archives(site: Site) -> Iterator[str]:
    for host in site.cluster:
        yield from (str(host.variables[name]) for name in _ARCHIVES if name in host.variables)
        repository = host.variables.get("slurm_packages_repository")
        if isinstance(repository, dict):
            yield str(repository.get("uri") or "")

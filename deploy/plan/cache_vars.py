"""Where packages come from in a site with a cache: each cache, and those who ask it."""

from typing import Any

from deploy.site.addresses import is_ip
from deploy.site.inventory import CACHE, Host, Site

Variables = dict[str, Any]


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
        # Not its value: a proxy's URL may have a password in it.
        "package_cache_upstream_proxy": "{{ proxy_http }}" if "proxy_http" in host.variables else "",
    }

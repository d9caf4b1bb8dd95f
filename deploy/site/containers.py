"""Containers: which hosts offer them."""

from collections.abc import Iterator

from deploy.errors import Finding
from deploy.site.inventory import CONTAINER, NODE, Site
from deploy.site.origin import host_origin
from deploy.site.schema import options

_SCOPE = "pyxis_container_scope"


def check_containers(site: Site) -> Iterator[Finding]:
    """Compute nodes without Enroot, with which the plugin cleans up after every job."""
    offering = {host.name for host in site.containers}
    without = [node.name for node in site.nodes if node.name not in offering]
    if not offering or not without:
        return
    scopes = {host.variables.get(_SCOPE, options()[_SCOPE].spec["default"]) for host in site.controllers}
    if "job" in scopes:
        yield Finding(
            host_origin(site.inventory, without[0]),
            "containers-on-some-nodes",
            f"{', '.join(without[:5])}{' …' if len(without) > 5 else ''} not in [{CONTAINER}]: "  # noqa: PLR2004
            "jobs end with a search for their containers, which fails there and drains the node",
            f"name [{NODE}] below [{CONTAINER}:children], or set {_SCOPE}: global",
        )

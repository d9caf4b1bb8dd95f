"""Where the monitoring keeps its numbers."""

from collections.abc import Iterator

from deploy.errors import Finding, Severity
from deploy.site.inventory import METRIC, Site
from deploy.site.origin import host_origin

_SIZE, _PLACE = "prometheus_retention_size", "prometheus_storage"
_MANY_NODES = 50
"""From so many on the numbers may become larger than what a controller's disk usually has left."""


def check_monitoring(site: Site) -> Iterator[Finding]:
    """Numbers without a limit beside Slurm's state and its database, which a full disk would cost."""
    names = {host.name for host in (*site.controllers, *site.database_hosts)}
    for host in site.metrics:
        is_beside = host.name in names and _PLACE not in host.variables
        if is_beside and not host.variables.get(_SIZE) and len(site.nodes) >= _MANY_NODES:
            yield Finding(
                host_origin(site.inventory, host.name),
                "metrics-without-limit",
                f"Prometheus's numbers of {len(site.nodes)} nodes lie on {host.name} beside what Slurm "
                "cannot be without, and nothing limits them: each node may make 1 to 3 GB in 90 days",
                f"set {_SIZE}, as in 50GB, or {_PLACE} to a file system of its own, or give [{METRIC}] a "
                "host of its own",
                Severity.WARNING,
            )

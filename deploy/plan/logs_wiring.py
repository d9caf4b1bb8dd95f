"""Where the logs of all hosts go: to the first host of the group that keeps them."""

from typing import Any

from deploy.site.inventory import LOGS, Site

Variables = dict[str, Any]


def keeper_of_logs(site: Site) -> Variables:
    """What the role log_client must know of it; nothing where no host keeps logs."""
    for host in site.group(LOGS):
        return {
            "log_client_server": host.cluster_address,
            "log_client_server_name": host.name,
            "log_client_port": host.value("log_server_port"),
        }
    return {}

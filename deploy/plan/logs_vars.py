"""Where the logs of all hosts go: to the first host of the group that keeps them."""

from ipaddress import ip_address
from typing import Any

from deploy.plan.access_vars import trusted_addresses
from deploy.site.inventory import LOGS, Site

Variables = dict[str, Any]


def senders_of_logs(site: Site) -> dict[str, str]:
    """The names of all hosts by the addresses that their logs come from."""
    return {str(ip_address(text)): host.name for host in site.cluster for text in trusted_addresses([host])}


def keeper_of_logs(site: Site) -> Variables:
    """What the role log_client must know of it; nothing where no host keeps logs."""
    for host in site.group(LOGS):
        return {
            "log_client_server": host.cluster_address,
            "log_client_server_name": host.name,
            "log_client_port": host.value("log_server_port"),
        }
    return {}

"""What roles must know of the directory that people come from: their keys, their admins, their homes."""

from typing import Any

from deploy.plan.access_vars import admin_groups, connecting_user
from deploy.site.inventory import Host, Site
from deploy.site.storage import has_shared_homes

Variables = dict[str, Any]

_KEYS = "/etc/ssh/deploy-directory-keys"
"""Where the role sssd places what asks the directory."""


def has_directory(host: Host) -> bool:
    """Whether people come to a host from a directory."""
    return bool(host.variables.get("sssd_servers"))


def directory_of(site: Site, host: Host) -> Variables:
    """Variables of one host; none without a directory."""
    if not has_directory(host):
        return {}
    return {
        "sssd_create_home": bool(host.value("users_create_home")) and not has_shared_homes(site, host),
        "sssd_local_users": [*filter(None, [connecting_user(host)])],
        "ssh_server_keys_command": _KEYS if host.value("sssd_ssh_keys") else "",
        "job_ssh_admin_groups": admin_groups(host),
    }

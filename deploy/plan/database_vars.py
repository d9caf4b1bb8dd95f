"""What the roles of the database must know of the whole site: its members, and what each of them does."""

from collections.abc import Mapping
from typing import Any

from deploy.plan.access_vars import trusted_addresses
from deploy.site.inventory import Host, Site
from deploy.site.schema import options

Variables = dict[str, Any]

KEY = "mariadb_cluster_key"
"""The secret that members know each other by."""
_PORTS = ("4444", "4567", "4568")
"""Of a member's whole state, of the members' talk, and of what one missed (Galera's documentation)."""


def database_backup(site: Site) -> str:
    """The host whose slurmdbd stands by; empty where there is one only."""
    return "".join(host.name for host in site.accounting_backup)


def member_variables(site: Site, host: Host, watcher: Mapping[str, str]) -> Variables:
    """Of one host: Slurm's database, its user and the one that watches, beside those that it declares there.

    Where several have the database the first one declares what is in it, and the others have it from there.
    """
    if host not in site.database_hosts:
        return {}
    user = {
        "name": "{{ slurmdbd_database_user }}",
        "password": "{{ slurmdbd_database_password }}",
        "privileges": "{{ slurmdbd_database_name }}.*:ALL",
    }
    return {
        "mariadb_added_databases": ["{{ slurmdbd_database_name }}"],
        "mariadb_added_users": [user, *([dict(watcher)] if site.metrics else [])],
        **_of_cluster(site, host),
    }


def _of_cluster(site: Site, host: Host) -> Variables:
    if not site.database_arbiter:
        return {}
    return {
        "mariadb_cluster_members": _addresses(site),
        "mariadb_cluster_address": host.cluster_address,
        "mariadb_cluster_name": _name(site),
        "mariadb_fills": host == site.database_host,
    }


def arbiter_variables(site: Site) -> Variables:
    """Of the host that has a vote and no rows."""
    if not site.database_arbiter:
        return {}
    return {
        "mariadb_arbiter_members": _addresses(site),
        "mariadb_arbiter_address": site.database_arbiter.cluster_address,
        "mariadb_arbiter_cluster": _name(site),
        "mariadb_arbiter_key": f"{{{{ {KEY} }}}}",
    }


def with_guarded(site: Site, host: Host, wired: Variables) -> Variables:
    """Variables of a host, with the ports of members for members alone where a firewall guards it."""
    if not site.database_arbiter or host not in site.database_members:
        return wired
    guarded = {"ports": list(_PORTS), "from": trusted_addresses(site.database_members)}
    return {**wired, "firewall_guarded": [*wired.get("firewall_guarded", []), guarded]}


def _addresses(site: Site) -> list[str]:
    return [host.cluster_address for host in site.database_members]


def _name(site: Site) -> str:
    default = options()["slurmctld_cluster_name"].spec["default"]
    return str(site.controller.variables.get("slurmctld_cluster_name", default))

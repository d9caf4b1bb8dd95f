"""What the roles about access must know of the whole site: who connects, who may reach whom."""

from collections.abc import Iterable
from typing import Any

from deploy.site.access import is_entered_by_job
from deploy.site.addresses import is_ip
from deploy.site.inventory import MEMBERS, METRIC, NODE, OF_NODES, PORTAL, REST, Host, Site
from deploy.site.schema import options
from deploy.site.slurm_parameters import told_node_name

Variables = dict[str, Any]

_SSH_PORT = 22
_LONGEST_NAMES = 6000
"""pam_env of Debian 12 ends at a line beyond 8192 bytes; the site adds names of its own."""


def access_of(site: Site, host: Host) -> Variables:
    """Variables of one host."""
    return _connecting_user(host) | {
        "firewall_lets_users_in": host in site.logins,
        "firewall_user_pages": _user_pages(site, host),
        "job_ssh_is_login": host in site.logins,
        "job_ssh_has_jobs": NODE in host.groups,
        "job_ssh_node_name": told_node_name(host) if NODE in host.groups else "",
        "ssh_server_has_jobs": NODE in host.groups,
        "ssh_server_only_by_job": is_entered_by_job(site, host),
        "ssh_server_admin_users": host.value("job_ssh_admin_users"),
        "ssh_server_admin_groups": admin_groups(host),
        "ssh_server_names": _names(host),
        "motd_memory_limit": str(
            host.variables.get("login_limits_memory", options()["login_limits_memory"].spec["default"])
        ),
        "firewall_ssh_ports": sorted({_SSH_PORT, ssh_port(host)}),
    }


def admin_groups(host: Host) -> list[str]:
    """The groups whose members come in always: those that the site names, else those of a directory, too."""
    named: list[str] = host.value("job_ssh_admin_groups")
    if "job_ssh_admin_groups" in host.variables or not host.variables.get("sssd_servers"):
        return named
    return list(dict.fromkeys([*named, *(str(group["name"]) for group in host.value("sssd_sudo_groups"))]))


def _user_pages(site: Site, host: Host) -> list[str]:
    """The ports that are open to whoever may log in."""
    portal = ["slurm_portal_port"] if host in site.group(PORTAL)[:1] else []
    rest = ["slurm_rest_port"] if host in site.group(REST) and host.value("slurm_rest_from_outside") else []
    return [str(host.value(name)) for name in (*portal, *rest)]


def _connecting_user(host: Host) -> Variables:
    """The account that Ansible connects with, which no role may shut out or hold back."""
    user, roles = connecting_user(host), ("job_ssh", "login_limits", "ssh_server")
    # Without one, Ansible takes the name of whoever types the command; the roles look for it on the host.
    return {f"{role}_connecting_user": user for role in roles} if user else {}


def connecting_user(host: Host) -> str:
    """The account that Ansible connects with; empty where the inventory does not say or only a run knows."""
    user = host.variables.get("ansible_user", host.variables.get("ansible_ssh_user"))
    return user if isinstance(user, str) and "{{" not in user else ""


def _names(host: Host) -> list[str]:
    """What a host is called, in full and in short, and its addresses, of which sshd knows who connects."""
    short = "" if is_ip(host.name) else host.name.partition(".")[0]
    names = (host.name, short, host.address, host.cluster_address)
    return sorted({name for name in names if name and "{{" not in name})


def trusted_addresses(hosts: Iterable[Host]) -> list[str]:
    """The addresses by which others know hosts and give them rights.

    Those in the cluster: Ansible's may be of a NAT, which others share.
    """
    return sorted(filter(is_ip, {host.cluster_address for host in hosts}))


def vouching(site: Site) -> list[str]:
    """The addresses of the hosts whose word of a user compute nodes take: where users are."""
    return trusted_addresses((*site.logins, *site.nodes))


def ssh_port(host: Host) -> int:
    """Where sshd listens, as far as the inventory knows."""
    port = str(host.variables.get("ansible_port", host.variables.get("ansible_ssh_port", _SSH_PORT)))
    return int(port) if port.isdigit() else _SSH_PORT


def peers(site: Site) -> list[str]:
    """The addresses of all hosts."""
    return trusted_addresses(site.cluster)


def direct(site: Site, networks: list[str]) -> list[str]:
    """What the cluster reaches of itself without a proxy; nothing where no host has one.

    So that, without one, a new node concerns no other.
    The addresses of all nodes would make every process's environment long: those of hosts that offer
    something are named, and the networks, for programs that know networks. The names of very many nodes are
    left out, too: PAM reads no variable from a line that is longer.
    """
    if not any(host.value(name) for host in site.cluster for name in ("proxy_http", "proxy_https")):
        return []
    offering = {host.name: host for host in (*site.controllers, *site.logins, *site.group(METRIC))}
    addresses = {host.cluster_address for host in offering.values()}
    names = [host.name for host in site.cluster]
    if len(",".join(names)) > _LONGEST_NAMES:
        serving = {*MEMBERS} - OF_NODES
        names = [host.name for host in site.cluster if serving & {*host.groups}]
    return [*names, *sorted(filter(is_ip, addresses)), *networks]

"""Machines of a lab that reach each other and this machine, and nothing else from now on.

A controller with the state of a cluster writes to the addresses that are in there, of login nodes on which
somebody waits for his job, and with the cluster's own key.
"""

import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, ip_address
from typing import Any

from deploy.errors import ExitCode, error
from deploy.lab.podman import podman, succeeds
from deploy.lab.state import Lab, container_name
from deploy.lab.tarball import Entry, pack
from deploy.site.inventory import Site

_UNIT = "deploy-lab-apart.service"
# Before all others by its metric; each time the machine boots, before its network is said to be there.
_TEXT = """[Unit]
Description=No route out of the lab
Before=network-online.target slurmctld.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=ip -4 route replace blackhole default metric 0
ExecStart=ip -6 route replace blackhole default metric 1
[Install]
WantedBy=multi-user.target
"""
_ELSEWHERE = "198.51.100.1"
"""An address of nobody's (RFC 5737), by which the route out is asked for."""


def cut_off(lab: Lab, site: Site) -> dict[str, Any]:
    """Takes the way out from every machine, and makes sure that no machine of a site is reached any more.

    Raises DeployError ``rehearsal-not-apart``.
    """
    addresses = [*_addresses(site)]
    if inside := [str(address) for address in addresses if address in lab.network]:
        raise error(
            "rehearsal-not-apart",
            f"machines of the site are at addresses that the lab has, too: {', '.join(inside)}",
            where=lab.name,
            hint="nothing was restored; type the same with another --name: its lab has another network",
            exit_code=ExitCode.FAILED,
        )
    for host in lab.hosts:
        container = container_name(lab.name, host.name)
        unit = pack([Entry(f"/etc/systemd/system/{_UNIT}", _TEXT)])
        podman("exec", "--interactive", container, "tar", "-x", "-C", "/", data=unit)
        podman("exec", container, "systemctl", "daemon-reload")
        podman("exec", container, "systemctl", "enable", "--now", "--quiet", _UNIT)
        for address in (*map(str, addresses), _ELSEWHERE):
            if succeeds("exec", container, "ip", "route", "get", address):
                raise error(
                    "rehearsal-not-apart",
                    f"{host.name} of the lab could still reach {address}",
                    where=lab.name,
                    hint="nothing was restored; this is a fault of deploy itself, please report it",
                    exit_code=ExitCode.FAILED,
                )
    return {"machines": len(lab.hosts), "addresses_of_the_site": len(addresses)}


def _addresses(site: Site) -> Iterator[IPv4Address]:
    """Where the hosts of a site are, as far as this machine knows it."""
    found = set()
    for host in site.hosts.values():
        said = host.connection
        named = str(said.get("ansible_ssh_host") or said.get("ansible_host", host.name))
        try:
            told = {str(entry[4][0]) for entry in socket.getaddrinfo(named, None, socket.AF_INET)}
        except (OSError, UnicodeError):
            continue
        found |= {address for address in map(ip_address, told) if isinstance(address, IPv4Address)}
    yield from sorted(address for address in found if not address.is_loopback)

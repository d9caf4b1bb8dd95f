"""Two daemons of deploy's that would listen on one port of a host, found before anything is connected to."""

from collections.abc import Iterator, Mapping
from typing import Any

from deploy.errors import Finding
from deploy.plan.expectations import host_ports
from deploy.plan.listening import listeners, members_of_phases
from deploy.site.hardware import Hardware
from deploy.site.inventory import Host, Site
from deploy.site.node_lists import fold

_SSH = {"daemon": "sshd", "port": 22, "protocol": "tcp", "setting": "ansible_port"}
_Clash = tuple[int, str, str, str, str]
"""The port, both daemons, and what moves each."""


def port_clashes(site: Site, contract: Mapping[str, Hardware]) -> Iterator[Finding]:
    """One finding for each pair of daemons, with all hosts on which they meet."""
    listen = listeners(members_of_phases(site, contract))
    hosts: dict[_Clash, list[Host]] = {}
    for host in site.cluster:
        for clash in _clashes(site, host, listen.get(host.name, ())):
            hosts.setdefault(clash, []).append(host)
    for (port, first, second, *settings), where in hosts.items():
        variables = [setting.partition(":")[0] for setting in settings]
        written = [name for name in variables if name in where[0].origins]
        yield Finding(
            where[0].where((written or variables)[-1]),
            "port-taken-twice",
            f"{first} and {second} would both listen on port {port} of {fold([host.name for host in where])}",
            f"give one of them another port: {' or '.join(settings)}",
        )


def _clashes(site: Site, host: Host, roles: tuple[str, ...]) -> Iterator[_Clash]:
    ssh = {**_SSH, "port": host.connection.get("ansible_port", _SSH["port"])}
    taken: dict[tuple[str, str], Mapping[str, Any]] = {}
    for entry in [ssh, *host_ports(site, host, roles)]:
        first = taken.setdefault((entry["protocol"], str(entry["port"])), entry)
        if first["daemon"] != entry["daemon"]:
            yield entry["port"], first["daemon"], entry["daemon"], first["setting"], entry["setting"]

"""What ``deploy status`` asks each host: the inventory source of playbooks/status.yml."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from deploy.plan.catalog import PHASES
from deploy.plan.declarations import service
from deploy.site.hardware import Hardware, hardware_of
from deploy.site.inventory import Site


def asked_hosts(site: Site, limit: Collection[str] | None = None) -> tuple[str, ...]:
    """The hosts of ``limit`` (all without it), and the controllers: only they know of the nodes' state."""
    controllers = {host.name for host in site.controllers}
    return tuple(
        host.name for host in site.cluster if limit is None or host.name in limit or host.name in controllers
    )


def services_by_host(site: Site, contract: Mapping[str, Hardware]) -> dict[str, tuple[str, ...]]:
    """The daemons that each host of the cluster should run, in the order of the phases."""
    services: dict[str, tuple[str, ...]] = {host.name: () for host in site.cluster}
    for phase in PHASES:
        own = tuple(found.unit for role in phase.roles if (found := service(role)))
        for host in phase.members(site, contract):
            services[host.name] = tuple(dict.fromkeys((*services[host.name], *own)))
    return services


def write_questions(path: Path, site: Site, asked: Collection[str], contract: Mapping[str, Hardware]) -> None:
    """Writes the inventory source: who is asked, and what. None of it needs root, which would take time."""
    services = services_by_host(site, contract)
    controllers, nodes = ({host.name for host in hosts} for hosts in (site.controllers, site.nodes))
    hosts: dict[str, dict[str, Any]] = {}
    for name in asked:
        hosts[name] = {
            "ansible_become": False,
            "status_services": services[name],
            "status_asks_slurm": name in controllers,
        }
        if name in nodes and (declared := hardware_of(site.hosts[name], contract)):
            hosts[name]["status_contract"] = declared
    path.write_text(json.dumps({"all": {"children": {"phase_status": {"hosts": hosts}}}}), encoding="utf-8")

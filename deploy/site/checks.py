"""What is wrong with a site, found offline: before the first connection, all of it at once."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException

from deploy.errors import DeployError, Finding, Severity
from deploy.site.hardware import check_hardware
from deploy.site.inventory import MASTER, NODE, Host, Site
from deploy.site.origin import host_origin
from deploy.site.secrets import check_secrets
from deploy.site.variables_check import check_variables

_NODE_NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_-]{0,62}$")


def check_site(site: Site, vault_password_file: Path | None = None) -> list[Finding]:
    """The site's warnings. Raises one DeployError with every finding when one of them is an error."""
    findings = site_findings(site, vault_password_file)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise DeployError(*findings)
    return findings


def site_findings(site: Site, vault_password_file: Path | None = None) -> list[Finding]:
    """Everything that is wrong with a site, and what may be, sorted by place."""
    checks: list[Callable[[Site], Iterable[Finding]]] = [
        _check_groups,
        _check_addresses,
        _check_names,
        _check_partitions,
        check_hardware,
        check_variables,
    ]
    findings = [finding for check in checks for finding in check(site)]
    findings += check_secrets(site, vault_password_file)
    return sorted({*site.warnings, *findings})


def _where(site: Site, name: str) -> str:
    return host_origin(site.inventory, name)


def _check_groups(site: Site) -> Iterator[Finding]:
    masters = site.masters
    if not masters:
        yield Finding(
            str(site.inventory),
            "no-slurm-master",
            f"the group {MASTER} is missing or empty: no host would run slurmctld",
            f"add a section [{MASTER}] with one host",
        )
    if len(masters) > 1:
        yield Finding(
            _where(site, masters[1].name),
            "several-slurm-masters",
            f"{MASTER} holds {len(masters)} hosts; a second controller is not supported yet",
            f"leave one host in [{MASTER}]",
        )
    if not site.nodes:
        yield Finding(
            str(site.inventory),
            "no-slurm-node",
            f"the group {NODE} is missing or empty: no host would run jobs",
            f"add a section [{NODE}] with the compute nodes",
        )
    for host in site.hosts.values():
        if not host.groups:
            yield Finding(
                _where(site, host.name),
                "host-in-no-group",
                f"{host.name} is in no group, so nothing would be done with it",
                f"add it to a group ([{NODE}] for a compute node), or remove its line",
            )


def _check_addresses(site: Site) -> Iterator[Finding]:
    by_address: defaultdict[tuple[str, str], list[Host]] = defaultdict(list)
    for host in site.cluster:
        if host.variables.get("ansible_connection", "ssh") != "local":
            by_address[host.address, str(host.variables.get("ansible_port", 22))].append(host)
    for (address, _), hosts in by_address.items():
        if len(hosts) > 1:
            yield Finding(
                _where(site, hosts[1].name),
                "duplicate-address",
                f"{' and '.join(host.name for host in hosts)} have the same address {address}",
                "give each host its own ansible_host",
            )


def _check_names(site: Site) -> Iterator[Finding]:
    for host in site.cluster:
        if not _NODE_NAME.match(host.name):
            yield Finding(
                _where(site, host.name),
                "invalid-host-name",
                f"{host.name!r} cannot be a Slurm node name: a letter, then letters, digits, '-' or '_'",
                "use a short host name, and put the address into ansible_host",
            )


def _check_partitions(site: Site) -> Iterator[Finding]:
    seen = set()
    for master in site.masters:
        partitions = master.variables.get("slurmctld_partitions")
        if not isinstance(partitions, list):
            continue
        where = master.where("slurmctld_partitions")
        defaults = []
        for partition in partitions:
            if not isinstance(partition, dict):
                continue
            name = str(partition.get("name", "?"))
            if name in seen:
                yield Finding(
                    where, "duplicate-partition", f"partition {name} is declared twice", "remove one of them"
                )
            seen.add(name)
            if partition.get("default") is True:
                defaults.append(name)
            yield from _check_members(site, where, name, partition)
        if len(defaults) > 1:
            yield Finding(
                where,
                "several-default-partitions",
                f"more than one default partition: {', '.join(defaults)}",
                "leave default: true on one of them",
            )


def _check_members(site: Site, where: str, name: str, partition: dict[str, Any]) -> Iterator[Finding]:
    nodes = {node.name for node in site.nodes}
    for group in partition.get("groups") or []:
        if not set(site.groups.get(str(group), ())) & nodes:
            yield Finding(
                where,
                "partition-without-nodes",
                f"partition {name}: group {group!r} holds no compute node",
                f"known groups: {', '.join(sorted(g for g in site.groups if set(site.groups[g]) & nodes))}",
            )
    for expression in partition.get("nodes") or []:
        try:
            unknown = sorted(set(NodeSet(str(expression))) - nodes)
        except NodeSetException as problem:
            unknown, reason = [str(expression)], str(problem)
        else:
            reason = f"not in [{NODE}]"
        if unknown:
            yield Finding(
                where,
                "partition-unknown-node",
                f"partition {name} names {', '.join(unknown[:5])}: {reason}",
                f"name hosts of [{NODE}], for example node[1-4]",
            )

"""The inventory itself: groups, host names and addresses."""

import ipaddress
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain

from deploy.errors import Finding, Severity
from deploy.site.addresses import is_host, is_ip
from deploy.site.inventory import (
    CACHE,
    CLUSTER,
    CONTAINER,
    DATABASE,
    LOGIN,
    LOGS,
    MASTER,
    METRIC,
    NFS,
    NFS_CLIENT,
    NODE,
    VOTERS,
    Host,
    Site,
)
from deploy.site.origin import host_origin, inventory_files, lines, shown

_OWN_GROUPS = (MASTER, NODE, LOGIN, METRIC, DATABASE, LOGS, CACHE, NFS, NFS_CLIENT, CLUSTER, CONTAINER)
_NODE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_RESERVED_NAMES = frozenset({"default", "all", "localhost"})
_HOST_RANGE = re.compile(r"\[([0-9]+):([0-9]+)(:-?[0-9]+)?\]")
_VARIABLE_OF_A_LINE = re.compile(r"(?:^|\s)([A-Za-z_]\w*)=(?:\"[^\"]*\"|'[^']*'|\S*)")
_SHOWN = 5
_MOST_CONTROLLERS = 3
_STATE = "slurmctld_state_save_location"


def check_groups(site: Site) -> Iterator[Finding]:
    """Groups that are missing, misspelled or contradict each other, and hosts that are in the wrong ones."""
    yield from _needed_groups(site)
    yield from _misspelled_groups(site)
    yield from _groups_named_as_hosts(site)
    yield from _groups_alike(site)
    yield from _stray_hosts(site)


def _needed_groups(site: Site) -> Iterator[Finding]:
    if not site.controllers:
        yield Finding(
            shown(str(site.inventory)),
            "no-slurm-master",
            f"the group {MASTER} is missing or empty: no host would run slurmctld",
            f"add a section [{MASTER}] with one host",
        )
    yield from _standing_by(site)
    if len(site.database_members) not in {1, VOTERS}:
        for other in site.database_members[1:2]:
            yield Finding(
                host_origin(site.inventory, other.name),
                "several-database-hosts",
                f"{DATABASE} holds {len(site.database_members)} hosts; it is one, or {VOTERS} with a vote: "
                "two that have the database, and an arbitrator",
                f"leave one host in [{DATABASE}], or {VOTERS}, the arbitrator last (it may be a controller)",
            )
    if len(site.metrics) > 1:
        yield Finding(
            host_origin(site.inventory, site.metrics[1].name),
            "several-metric-hosts",
            f"{METRIC} holds {len(site.metrics)} hosts: each would send every alert",
            f"leave one host in [{METRIC}]",
        )
    if not site.nodes:
        yield Finding(
            shown(str(site.inventory)),
            "no-slurm-node",
            f"the group {NODE} is missing or empty: no host would run jobs",
            f"add a section [{NODE}] with the compute nodes",
        )


def _standing_by(site: Site) -> Iterator[Finding]:
    """Several controllers, of which one could not take over from another."""
    for surplus in site.controllers[_MOST_CONTROLLERS : _MOST_CONTROLLERS + 1]:
        yield Finding(
            host_origin(site.inventory, surplus.name),
            "many-slurm-masters",
            f"{MASTER} holds {len(site.controllers)} hosts; one leads, and two that stand by are enough",
            f"leave at most {_MOST_CONTROLLERS} hosts in [{MASTER}]",
        )
    for second in site.controllers[1:2]:
        if not site.controller.variables.get(_STATE):
            yield Finding(
                host_origin(site.inventory, second.name),
                "state-not-shared",
                f"{second.name} would take over from {site.controller.name} without its state: no directory "
                "is named that all controllers mount",
                f"mount storage that outlives a controller on all of [{MASTER}], and name a directory there: "
                f"{_STATE}: /shared/slurm",
            )
        if any(host in site.controllers for host in site.database_hosts):
            yield Finding(
                host_origin(site.inventory, second.name),
                "database-on-controller",
                f"{second.name} could not take over when {site.database_host.name} is gone, and the "
                "accounting database with it: a slurmctld that begins to lead asks it first",
                f"name a host that is no controller, a login node for example, in [{DATABASE}]",
            )


def _misspelled_groups(site: Site) -> Iterator[Finding]:
    """Names that differ from a group of deploy only in case, hyphens or a plural."""
    spellings = {_plain(name): name for name in _OWN_GROUPS}
    for group, hosts in site.groups.items():
        meant = spellings.get(_plain(group))
        if hosts and meant and group != meant:
            yield Finding(
                shown(str(site.inventory)),
                "misspelled-group",
                f"the group [{group}] means nothing, so its hosts are not taken for those of [{meant}]",
                f"call it [{meant}]",
            )


def _plain(group: str) -> str:
    return group.lower().replace("_", "-").rstrip("s")


def _groups_named_as_hosts(site: Site) -> Iterator[Finding]:
    for name in sorted(site.groups.keys() & site.hosts.keys()):
        yield Finding(
            host_origin(site.inventory, name),
            "group-named-as-host",
            f"{name} is a host and a group: a pattern or a group_vars file with this name means both",
            "give the group another name",
        )


def _groups_alike(site: Site) -> Iterator[Finding]:
    """Groups of the site's own that differ in case: Ansible tells them apart, and people do not."""
    seen: dict[str, str] = {}
    for name in sorted(site.groups):
        other = seen.setdefault(name.lower(), name)
        if other != name and _plain(name) not in {_plain(own) for own in _OWN_GROUPS}:
            yield Finding(
                shown(str(site.inventory)),
                "groups-alike",
                f"the groups [{other}] and [{name}] differ in capital letters only, and each has its own "
                "variables",
                "give one of them another name, or name their hosts below one",
                Severity.WARNING,
            )


def _stray_hosts(site: Site) -> Iterator[Finding]:
    for host in site.hosts.values():
        if not host.groups:
            yield Finding(
                host_origin(site.inventory, host.name),
                "host-in-no-group",
                f"{_visible(host.name)} is in no group, so nothing would be done with it",
                f"add it to a group ([{NODE}] for a compute node), or remove its line",
            )
    members = {host.name for host in site.cluster}
    apart = [host.name for host in site.hosts.values() if host.groups and host.name not in members]
    if apart and members:
        yield Finding(
            host_origin(site.inventory, apart[0]),
            "host-outside-cluster",
            f"{_some(apart)} in no group of the cluster, so nothing is done there",
            f"add what belongs to the cluster to a group ([{NODE}] for a compute node)",
            Severity.WARNING,
        )
    whole = set(site.groups.get(CLUSTER, ()))
    beside = [host.name for host in site.cluster if host.name not in whole]
    if whole and beside:
        yield Finding(
            host_origin(site.inventory, beside[0]),
            "host-outside-slurm-cluster",
            f"{_some(beside)} not in [{CLUSTER}], so what is set for the whole cluster does not reach there",
            f"name the groups of all hosts below [{CLUSTER}:children]",
        )


def _visible(name: str) -> str:
    """A name with what nobody sees in it, as spaces that are none, made visible."""
    return name if name.isascii() else ascii(name)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more} {'is' if len(names) == 1 else 'are'}"


def check_names(site: Site) -> Iterator[Finding]:
    """Names that Slurm or the network cannot use, and names that are one."""
    by_name: defaultdict[str, list[Host]] = defaultdict(list)
    for host in site.cluster:
        by_name[host.name.lower()].append(host)
        if not _NODE_NAME.fullmatch(host.name) or host.name.lower() in _RESERVED_NAMES:
            yield Finding(
                host_origin(site.inventory, host.name),
                "invalid-host-name",
                f"{host.name!r} cannot be a Slurm node name: a letter, then letters, digits, '-' or '_'",
                "use a short host name, and put the address into ansible_host",
            )
    for hosts in by_name.values():
        if len(hosts) > 1:
            yield Finding(
                host_origin(site.inventory, hosts[1].name),
                "duplicate-host-name",
                f"{_both(hosts)} are one name: host names do not tell capital letters from small ones",
                "give each host its own name",
            )
    yield from _defined_twice(site)
    yield from _said_twice(site)
    yield from _ranges_of_nobody(site)


def _ranges_of_nobody(site: Site) -> Iterator[Finding]:
    """Ranges of hosts whose end comes before their beginning: Ansible takes them for no host, in silence."""
    for path in inventory_files(site.inventory):
        for number, line in enumerate(lines(path), start=1):
            name = line.split("#", 1)[0].strip().partition(" ")[0].strip("\"':")
            if name.startswith("[") or "=" in name:
                continue
            for first, last, step in _HOST_RANGE.findall(name):
                if int(first) > int(last):
                    why, right = f"{first} comes after {last}", f"[{last}:{first}]"
                elif step.startswith(":-"):
                    why, right = "its steps go backwards", f"[{first}:{last}]"
                else:
                    continue
                yield Finding(
                    shown(f"{path}:{number}"),
                    "range-of-nobody",
                    f"{name} means no host: {why}",
                    f"write the smaller one first: {right}",
                )


def _said_twice(site: Site) -> Iterator[Finding]:
    """Lines of an INI inventory with one variable twice, of which Ansible takes the last in silence."""
    for path in inventory_files(site.inventory):
        for number, line in enumerate(lines(path) if path.suffix in {"", ".ini"} else (), start=1):
            names = _VARIABLE_OF_A_LINE.findall(line.partition(" #")[0]) if line[:1] not in "[#;" else []
            for name in sorted({name for name in names if names.count(name) > 1}):
                yield Finding(
                    shown(f"{path}:{number}"),
                    "variable-twice",
                    f"{name} is set twice in this line, and only the last one would count",
                    "leave the one that is right",
                )


def _defined_twice(site: Site) -> Iterator[Finding]:
    """Hosts with two addresses in an INI inventory, of which Ansible takes the last in silence."""
    definition = re.compile(
        r"^\s*(?P<name>[^\s\[#;=]+)\s(?:.*\s)?ansible_host\s*=\s*[\"']?(?P<address>[^\s\"'#]+)"
    )
    first: dict[str, str] = {}
    sources = ((path, lines(path)) for path in inventory_files(site.inventory))
    for path, number, line in chain.from_iterable(
        ((path, number, line) for number, line in enumerate(text, start=1)) for path, text in sources
    ):
        match = definition.match(line)
        if not match or match["name"] not in site.hosts:
            continue
        address = first.setdefault(match["name"], match["address"])
        if address != match["address"]:
            yield Finding(
                shown(f"{path}:{number}"),
                "duplicate-host",
                f"{match['name']} has a second line with another address: {match['address']} after {address}",
                "leave one of the lines, or give one host another name",
            )


def check_addresses(site: Site) -> Iterator[Finding]:
    """Addresses that are none, that other hosts cannot use, or that two hosts share."""
    for host in site.cluster:
        yield from _address_faults(site, host)
    remote = [host for host in site.cluster if host.variables.get("ansible_connection", "ssh") != "local"]
    ports = ((host, (host.address, _port(host))) for host in remote)
    yield from _shared(site, ports, "ansible_host")
    yield from _shared(
        site,
        ((host, (host.cluster_address, "")) for host in site.cluster if host.cluster_address != host.address),
        "hosts_file_address",
    )


def _port(host: Host) -> str:
    return str(host.variables.get("ansible_ssh_port") or host.variables.get("ansible_port", 22))


def _shared(
    site: Site, addresses: Iterable[tuple[Host, tuple[str, str]]], variable: str
) -> Iterator[Finding]:
    by_address: defaultdict[tuple[str, str], list[Host]] = defaultdict(list)
    for host, address in addresses:
        by_address[address].append(host)
    for key, hosts in by_address.items():
        if len(hosts) > 1:
            yield Finding(
                host_origin(site.inventory, hosts[1].name),
                "duplicate-address",
                f"{_both(hosts)} have the same address {key[0]}",
                f"give each host its own {variable}",
            )


def _both(hosts: list[Host]) -> str:
    return " and ".join(host.name for host in hosts[:_SHOWN])


def _address_faults(site: Site, host: Host) -> Iterator[Finding]:
    address = host.cluster_address
    if "{{" in host.address:
        yield Finding(
            host.where("ansible_host"),
            "invalid-address",
            f"the address of {host.name} is a template, but Slurm's configuration needs it before the run",
            "write the address itself into ansible_host",
        )
    elif host.address != host.name and not is_host(host.address):
        yield Finding(
            host.where("ansible_host"),
            "invalid-address",
            f"the address of {host.name}, {host.address!r}, is neither a host's IP address nor a host name",
            "write for example: ansible_host=10.0.0.11",
        )
    elif len(site.cluster) > 1 and _is_loopback(address):
        yield Finding(
            host.where("ansible_host"),
            "loopback-address",
            f"{host.name} has the address {address}, by which no other host of the cluster reaches it",
            "write its address inside the cluster into ansible_host, or into hosts_file_address",
        )


def _is_loopback(address: str) -> bool:
    return address == "localhost" or (is_ip(address) and ipaddress.ip_address(address).is_loopback)

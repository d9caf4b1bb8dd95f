"""Any Ansible inventory, read by Ansible itself, as a frozen Site."""

import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from deploy.errors import DeployError, Finding, error
from deploy.site import own_files
from deploy.site.aliases import check_aliases, check_ranges
from deploy.site.listing_process import ListingProcess
from deploy.site.origin import shown
from deploy.site.reading import Resolution, read_with_ansible
from deploy.site.schema import default_of, options
from deploy.site.wording import is_computed

MASTER = "slurm-master"
NODE = "slurm-node"
LOGIN = "slurm-login"
METRIC = "slurm-metric"
DATABASE = "slurm-database"
NFS = "slurm-nfs"
NFS_CLIENT = "slurm-nfs-client"
LOGS = "slurm-log"
CACHE = "slurm-cache"
PORTAL = "slurm-portal"
REGISTRY = "slurm-registry"
REST = "slurm-rest"
CLUSTER = "slurm-cluster"
MEMBERS = (
    *(MASTER, NODE, LOGIN, METRIC, DATABASE, LOGS, CACHE, NFS, NFS_CLIENT, PORTAL, REGISTRY, REST),
    CLUSTER,
)
"""The groups whose hosts are of the cluster."""
OF_NODES = frozenset({NODE, NFS_CLIENT, CLUSTER})
"""Those of which a host serves nobody but its jobs."""
VOTERS = 3
"""Of a database that survives the loss of a host."""
RDMA = "rdma"
CONTAINER = "slurm-container"
SECRETS_FILE = own_files.SECRETS
FACTS = (
    "architecture",
    "deb_packages",
    "deb_source_pending",
    "distribution",
    "distribution_major_version",
    "distribution_version",
    "memtotal_mb",
    "pkg_mgr",
    "service_mgr",
)
"""What is known of a host in a run; nothing gathers more."""
_IMPLICIT_GROUPS = frozenset({"all", "ungrouped"})


@dataclass(frozen=True)
class Host:
    """A machine of the inventory with its merged variables and the names of all its groups."""

    name: str
    variables: Mapping[str, Any]
    groups: frozenset[str]
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each variable got its value, as an absolute ``file:line``."""
    connection: Mapping[str, Any] = field(default_factory=dict)
    """How it is reached: its ``ansible_*`` variables on that, rendered."""
    resolutions: Mapping[str, Resolution] = field(default_factory=dict)
    """What variables with templates come to: those that roles read, secrets.yml's among them."""

    def where(self, variable: str) -> str:
        """The place of a variable for a finding; the host's name where nothing is known."""
        place = self.origins.get(variable)
        return shown(place) if place else self.name

    def value(self, variable: str) -> Any:  # noqa: ANN401 - a variable is whatever its role says
        """A role's public variable: what the inventory says, else the role's default."""
        return self.variables.get(variable, default_of(variable))

    @property
    def address(self) -> str:
        """Where Ansible connects to: ``ansible_host``, or its old name, else the inventory name."""
        said = self.variables.get("ansible_ssh_host") or self.variables.get("ansible_host", self.name)
        return str(said)

    @property
    def cluster_address(self) -> str:
        """Where the cluster's hosts reach it: differs from Ansible's behind a jump host or a NAT."""
        return str(self.variables.get("hosts_file_address") or self.address)

    def place(self, port: object) -> str:
        """A port of it inside the cluster, as it stands in a URL."""
        address = self.cluster_address
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@dataclass(frozen=True)
class Site:
    """What the admin wrote. ``groups`` holds every group with all its hosts, children's included."""

    inventory: Path
    hosts: Mapping[str, Host]
    groups: Mapping[str, tuple[str, ...]]
    warnings: tuple[Finding, ...] = ()
    """What Ansible could read only in part."""
    leaves_templates: bool = False
    """Whether nobody could say what templates come to, so that what reads variables has to run."""

    @property
    def directory(self) -> Path:
        """Where group_vars/, secrets.yml, hardware.yml and the journal live."""
        return site_directory(self.inventory)

    def group(self, name: str) -> tuple[Host, ...]:
        """The hosts of a group in inventory order; empty when there is no such group."""
        return tuple(self.hosts[host] for host in self.groups.get(name, ()))

    def without(self, names: Collection[str]) -> "Site":
        """The site as if it did not have these hosts."""
        return replace(
            self,
            hosts={name: host for name, host in self.hosts.items() if name not in names},
            groups={
                group: tuple(host for host in hosts if host not in names)
                for group, hosts in self.groups.items()
            },
        )

    @cached_property
    def controllers(self) -> tuple[Host, ...]:
        """The hosts of slurmctld."""
        return self.group(MASTER)

    @property
    def controller(self) -> Host:
        """The controller whose variables speak for the cluster, and where Slurm is asked: the first."""
        return self.controllers[0]

    @property
    def database_members(self) -> tuple[Host, ...]:
        """Who has a vote on the database, of three the third an arbitrator; else its one host."""
        return self.group(DATABASE) or self.controllers[:1]

    @property
    def database_arbiter(self) -> Host | None:
        """The host that has a vote and no rows; None where one host has the database."""
        return self.database_members[2] if len(self.database_members) == VOTERS else None

    @property
    def database_hosts(self) -> tuple[Host, ...]:
        """The hosts of MariaDB: the first controller where the inventory names none."""
        members = self.database_members
        return members[:-1] if len(members) == VOTERS else members

    @property
    def database_host(self) -> Host:
        """The host whose MariaDB is used, by the slurmdbd that leads: the first."""
        return self.database_hosts[0]

    @property
    def accounting_hosts(self) -> tuple[Host, ...]:
        """The hosts of slurmdbd, which is where its database is; the first leads, a second stands by."""
        return self.database_hosts

    @property
    def accounting_lead(self) -> tuple[Host, ...]:
        """Of those the one that is asked, as long as it answers: one that stands by answers nobody."""
        return self.accounting_hosts[:1]

    @property
    def accounting_backup(self) -> tuple[Host, ...]:
        """Of those the one that stands by."""
        return self.accounting_hosts[1:2]

    @cached_property
    def nodes(self) -> tuple[Host, ...]:
        """The compute nodes."""
        return self.group(NODE)

    @cached_property
    def logins(self) -> tuple[Host, ...]:
        """The login nodes; the controllers where the inventory names none."""
        return self.group(LOGIN) or self.controllers

    @cached_property
    def metrics(self) -> tuple[Host, ...]:
        """Who watches the cluster: the controller where there is no such group, nobody where it is empty."""
        return self.group(METRIC) if METRIC in self.groups else self.controllers[:1]

    @cached_property
    def containers(self) -> tuple[Host, ...]:
        """The hosts that offer containers; none where the inventory names none."""
        return tuple(host for host in self.cluster if CONTAINER in host.groups)

    @cached_property
    def resolved(self) -> "Site":
        """The site with the values that its templates come to, as far as they are known."""
        return replace(self, hosts={name: _resolved(host) for name, host in self.hosts.items()})

    @cached_property
    def cluster(self) -> tuple[Host, ...]:
        """Every host of the cluster: the union of its groups, in inventory order."""
        members = {host.name for name in MEMBERS for host in self.group(name)}
        return tuple(host for host in self.hosts.values() if host.name in members)


def _resolved(host: Host) -> Host:
    known = {
        name: resolution.value
        for name, resolution in host.resolutions.items()
        if name in host.variables and resolution.is_known
    }
    return replace(host, variables={**host.variables, **known}) if known else host


def existing_inventory(inventory: Path) -> Path:
    """The inventory's absolute path. Raises DeployError ``inventory-not-found``."""
    if not inventory.exists():
        raise error(
            "inventory-not-found",
            "no such inventory",
            where=str(inventory),
            hint="check the path, or make a rehearsal cluster with: deploy lab up",
        )
    # Ansible goes by the path as it is written: of a link, group_vars and secrets lie beside the link.
    return Path(os.path.abspath(inventory))  # noqa: PTH100 - resolve() would follow it


def site_directory(inventory: Path) -> Path:
    """The directory of a site: the inventory's own, or the inventory where that is a directory."""
    return inventory if inventory.is_dir() else inventory.parent


def read_site(
    inventory: Path,
    *,
    limit: str | None = None,
    vault_password_file: Path | None = None,
    extra_variables: Mapping[str, Any] | None = None,
    under_way: ListingProcess | None = None,
) -> Site:
    """Read an inventory file or directory; ``limit`` is an Ansible host pattern.

    ``under_way`` is an Ansible that was started beforehand.

    ``extra_variables`` win over what the inventory says, on every host. Of a part of a site templates are not
    resolved.

    Raises DeployError: ``inventory-not-found``, ``inventory-invalid``, ``too-many-aliases``,
    ``range-too-long``, ``limit-matches-nothing``.
    """
    inventory = existing_inventory(inventory)
    aliases = check_aliases(inventory, site_directory(inventory), SECRETS_FILE)
    if excesses := sorted([*aliases, *check_ranges(inventory)]):
        raise DeployError(*excesses)
    context = None if limit else partial(_context, inventory, extra_variables or {})
    reading = read_with_ansible(inventory, limit, vault_password_file, context, under_way)
    groups = {name: tuple(hosts) for name, hosts in reading.groups.items()}
    if not reading.hosts:
        if limit:
            raise error(
                "limit-matches-nothing",
                f"--limit {limit!r} matches no host of the inventory",
                where=str(inventory),
                hint=f"list the hosts with: ansible-inventory -i {inventory} --graph",
            )
        raise error(
            "inventory-invalid",
            "this is not an inventory: it names no host",
            where=shown(str(inventory)),
            hint=f"name the machines below [{MASTER}] and [{NODE}]: ctl1 ansible_host=10.0.0.1",
        )
    extra = extra_variables or {}
    on_connection = {name: value for name, value in extra.items() if name.startswith("ansible_")}
    memberships: defaultdict[str, set[str]] = defaultdict(set)
    for group, members in groups.items():
        for member in members:
            memberships[member].add(group)
    hosts = {
        name: Host(
            name=name,
            variables={**variables, **extra},
            groups=frozenset(memberships[name]) - _IMPLICIT_GROUPS,
            origins={**reading.origins[name], **dict.fromkeys(extra, "--extra-vars")},
            connection={**reading.connections[name], **on_connection},
            resolutions=reading.resolutions.get(name, {}),
        )
        for name, variables in reading.hosts.items()
    }
    return Site(
        inventory=inventory,
        hosts=hosts,
        groups=groups,
        warnings=reading.warnings,
        leaves_templates=reading.leaves_templates,
    )


def _context(inventory: Path, extra: Mapping[str, Any]) -> dict[str, Any]:
    """What templates of the inventory may mention beside its variables (see resolution.py)."""
    known = options()
    return {
        "names": list(known),
        "defaults": {
            name: option.spec["default"]
            for name, option in known.items()
            if option.spec.get("default") is not None
        },
        "later": [
            name for name, option in known.items() if option.spec.get("required") or is_computed(option.spec)
        ],
        "facts": FACTS,
        "extra": dict(extra),
        "secrets": str(site_directory(inventory) / SECRETS_FILE),
    }

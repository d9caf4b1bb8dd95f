"""Any Ansible inventory, read by Ansible itself, as a frozen Site."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from deploy.content import ansible_config
from deploy.errors import error

MASTER = "slurm-master"
NODE = "slurm-node"
LOGIN = "slurm-login"
METRIC = "slurm-metric"
CLUSTER = "slurm-cluster"
_IMPLICIT_GROUPS = frozenset({"all", "ungrouped"})


@dataclass(frozen=True)
class Host:
    """A machine of the inventory with its merged variables and the names of all its groups."""

    name: str
    variables: Mapping[str, Any]
    groups: frozenset[str]

    @property
    def address(self) -> str:
        """Where Ansible connects to: ``ansible_host``, else the inventory name."""
        return str(self.variables.get("ansible_host", self.name))


@dataclass(frozen=True)
class Site:
    """What the admin wrote. ``groups`` holds every group with all its hosts, children's included."""

    inventory: Path
    hosts: Mapping[str, Host]
    groups: Mapping[str, tuple[str, ...]]

    @property
    def directory(self) -> Path:
        """Where group_vars/, secrets.yml, hardware.yml and the journal live."""
        return site_directory(self.inventory)

    def group(self, name: str) -> tuple[Host, ...]:
        """The hosts of a group in inventory order; empty when there is no such group."""
        return tuple(self.hosts[host] for host in self.groups.get(name, ()))

    @property
    def masters(self) -> tuple[Host, ...]:
        """The Slurm controllers."""
        return self.group(MASTER)

    @property
    def nodes(self) -> tuple[Host, ...]:
        """The compute nodes."""
        return self.group(NODE)

    @property
    def logins(self) -> tuple[Host, ...]:
        """The login nodes; the controllers where the inventory names none."""
        return self.group(LOGIN) or self.masters

    @cached_property
    def cluster(self) -> tuple[Host, ...]:
        """Every host of the cluster: the union of its groups, in inventory order."""
        members = {host.name for name in (MASTER, NODE, LOGIN, METRIC, CLUSTER) for host in self.group(name)}
        return tuple(host for host in self.hosts.values() if host.name in members)


def existing_inventory(inventory: Path) -> Path:
    """The inventory's absolute path. Raises DeployError ``inventory-not-found``."""
    if not inventory.exists():
        raise error(
            "inventory-not-found",
            "no such inventory",
            where=str(inventory),
            hint="check the path, or make a rehearsal cluster with: deploy lab up",
        )
    return inventory.resolve()


def site_directory(inventory: Path) -> Path:
    """The directory of a site: the inventory's own, or the inventory where that is a directory."""
    return inventory if inventory.is_dir() else inventory.parent


def read_site(
    inventory: Path,
    *,
    limit: str | None = None,
    vault_password_file: Path | None = None,
    extra_variables: Mapping[str, Any] | None = None,
) -> Site:
    """Read an inventory file or directory; ``limit`` is an Ansible host pattern.

    ``extra_variables`` win over what the inventory says, on every host.

    Raises DeployError: ``inventory-not-found``, ``inventory-invalid``, ``limit-matches-nothing``.
    """
    inventory = existing_inventory(inventory)
    listing = _listing(inventory, limit, vault_password_file)
    hostvars: dict[str, dict[str, Any]] = listing["hosts"]
    groups = {name: tuple(hosts) for name, hosts in listing["groups"].items()}
    names = list(hostvars)
    if not names:
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
            where=str(inventory),
            hint="see the example in inventory/example/inventory.ini",
        )
    hosts = {
        name: Host(
            name=name,
            variables={**hostvars.get(name, {}), **(extra_variables or {})},
            groups=frozenset(g for g, members in groups.items() if name in members) - _IMPLICIT_GROUPS,
        )
        for name in names
    }
    return Site(inventory=inventory, hosts=hosts, groups=groups)


def _listing(inventory: Path, limit: str | None, vault_password_file: Path | None) -> dict[str, Any]:
    command = [sys.executable, "-I", str(Path(__file__).with_name("listing.py")), str(inventory)]
    command += [str(ansible_config().parent), limit or "", str(vault_password_file or "")]
    environment = os.environ | {
        "ANSIBLE_CONFIG": str(ansible_config()),
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
        "ANSIBLE_NOCOLOR": "1",
    }
    result = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if result.returncode == 0:
        listing: dict[str, Any] = json.loads(result.stdout)
        return listing
    raise error(
        "inventory-invalid",
        f"Ansible cannot read this inventory: {_reason(result.stderr)}",
        where=str(inventory),
        hint=f"mend it until this answers: ansible-inventory -i {inventory} --list",
    )


def _reason(stderr: str) -> str:
    """The lines of ansible-inventory's complaint that name a cause, on one line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    causes = [
        line for line in lines if re.match(r"(\[?(ERROR|WARNING)\]?:|Origin:|.*(rror|nvalid|xpected))", line)
    ]
    return " ".join(dict.fromkeys(causes or lines[-3:]))[:600]

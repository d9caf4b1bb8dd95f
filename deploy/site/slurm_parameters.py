"""What a site writes into slurm.conf by its own names: what deploy relies on itself must stay."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deploy.errors import Finding
from deploy.site.inventory import Host, Site
from deploy.site.rules import PORT, PORT_RANGE, Rule
from deploy.site.values import opaque

VARIABLE = "slurmctld_parameters"
_HAVE_A_PLACE: Mapping[str, tuple[str, str]] = {
    "acctgatherenergytype": (
        "AcctGatherEnergyType",
        "set slurmctld_energy_sources, by which nodes get what it needs, too",
    ),
    "authtype": ("AuthType", "set slurm_auth_type, by which keys are placed, too"),
    "credtype": ("CredType", "it follows from slurm_auth_type"),
    "clustername": ("ClusterName", "set slurmctld_cluster_name, which the accounting goes by, too"),
    "statesavelocation": ("StateSaveLocation", "set slurmctld_state_save_location, which is made, too"),
    "slurmctldhost": ("SlurmctldHost", "name the controller in the group slurm-master"),
    "nodename": ("NodeName", "name nodes in the group slurm-node; further words: slurmd_node_parameters"),
    "partitionname": ("PartitionName", "declare partitions in slurmctld_partitions"),
}
"""Parameters of which other parts of the cluster have to know."""

_PORTS: Mapping[str, Rule] = {"SlurmctldPort": PORT_RANGE, "SlurmdPort": PORT}
"""slurm.conf(5): slurmctld may listen on several ports, slurmd on one. Firewall and checks go by them."""

_TOLD_NAME = re.compile(r"(?:^|\s)-N\s*(\{\{.*?\}\}|\S+)")
"""slurmd(8); a template is known on the host only."""


def slurm_parameter(host: Host, name: str) -> str | None:
    """What the inventory says of a parameter of slurm.conf, whatever its case; None when it says nothing."""
    declared: object = host.value(VARIABLE)
    if not isinstance(declared, dict):
        return None
    return next((_text(value) for key, value in declared.items() if str(key).lower() == name.lower()), None)


def told_node_name(host: Host) -> str:
    """What slurmd is told to take for its node's name; empty where it goes by the machine's."""
    told = _TOLD_NAME.search(str(host.value("slurmd_options")))
    return told[1] if told else ""


def check_slurm_parameters(site: Site) -> Iterator[Finding]:
    """Parameters that have a place of their own, or that the nodes could not do without."""
    for master in site.controllers:
        declared = master.variables.get(VARIABLE)
        if not isinstance(declared, dict):
            continue
        where = master.where(VARIABLE)
        for name in declared:
            if str(name).lower() in _HAVE_A_PLACE:
                written, hint = _HAVE_A_PLACE[str(name).lower()]
                yield Finding(
                    where,
                    "parameter-with-a-place",
                    f"{VARIABLE} has {written}, of which the rest of the cluster would not know",
                    hint,
                )
        if slurm_parameter(master, "SlurmctldParameters") == "":
            yield Finding(
                where,
                "nodes-without-configuration",
                f"{VARIABLE} takes SlurmctldParameters away, and with it enable_configless: no node would "
                "get its configuration",
                "leave it out, or write what is to be added",
            )
        yield from _no_ports(master)
        yield from _written_twice(where, declared)


def _no_ports(master: Host) -> Iterator[Finding]:
    for name, rule in _PORTS.items():
        value = slurm_parameter(master, name)
        if value and not opaque(value) and not rule.fits(value):
            yield Finding(
                master.where(VARIABLE),
                "invalid-value",
                f"{VARIABLE} has {name} {value!r}, not {rule.expected}",
                "write a port, or leave it out for Slurm's own",
            )


def _written_twice(where: str, declared: Mapping[str, Any]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in map(str, declared):
        first = seen.setdefault(name.lower(), name)
        if first != name:
            yield Finding(
                where,
                "parameter-written-twice",
                f"{VARIABLE} has {first} and {name}, which are the same to Slurm",
                "keep one of them",
            )


def _text(value: object) -> str:
    if value is None:
        return ""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)

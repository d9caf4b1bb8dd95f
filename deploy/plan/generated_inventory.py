"""The generated inventory: phase groups, and the role variables that follow from the whole site.

Roles read only their own variables. What one host must know of others is computed here, from the inventory
and the hardware contract alone, so that a run limited to one host renders the same files as a full run.
"""

import ipaddress
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ClusterShell.NodeSet import NodeSet

from deploy import __version__
from deploy.plan.access_vars import access_of, direct, peers, vouching
from deploy.plan.build import Plan
from deploy.plan.cache_vars import cache_of, caches
from deploy.plan.catalog import PHASES, Phase
from deploy.plan.container_vars import exchange, plugin_lines, task_prolog
from deploy.plan.database_vars import arbiter_variables, database_backup, member_variables, with_guarded
from deploy.plan.directory_vars import directory_of
from deploy.plan.expectations import host_expectations, site_expectations
from deploy.plan.gpu_vars import finds_gpus, gpu_variables, has_mig, slurm_gpus
from deploy.plan.job_program_vars import node_programs, not_brought, slurm_programs
from deploy.plan.listening import listeners, members_of_phases
from deploy.plan.logs_vars import keeper_of_logs, senders_of_logs
from deploy.plan.monitoring_vars import DATABASE_ACCOUNT, monitoring_variables, scrape_targets
from deploy.plan.motd_vars import partitions_in_words
from deploy.plan.portal_vars import portal_variables
from deploy.plan.registry_vars import pulling, registry_variables
from deploy.plan.rest_vars import rest_variables, tokens_of
from deploy.plan.slurm_source import is_built, source_variables
from deploy.plan.software_vars import software_variables
from deploy.plan.storage_vars import host_storage, node_scratch, required_mounts
from deploy.plan.topology_vars import topology_nodes
from deploy.plan.validation_vars import validation_accounting, validation_partitions
from deploy.site.accounting import accounts_of_groups
from deploy.site.addresses import is_ip
from deploy.site.energy import energy_sources
from deploy.site.hardware import Hardware, hardware_of, is_discovered
from deploy.site.inventory import Host, Site
from deploy.site.node_lists import slurm_list
from deploy.site.node_sets import members
from deploy.site.reservations import declared_reservations
from deploy.site.schema import options
from deploy.site.versions import downloads

Variables = dict[str, Any]

_SLURM_COMPONENTS: tuple[tuple[str, str], ...] = (
    ("accounting", "slurmdbd"),
    ("controller", "slurmctld"),
    ("compute", "slurmd"),
    ("login", "sackd"),
    ("rest", "slurmrestd"),
)


_STRATUM_WITHOUT_UPSTREAM = 10
_EVERYBODY = ["0.0.0.0/0", "::/0"]
_ACCOUNTED = ("jobs", "reservations", "usage", "users")
"""What slurmdbd, too, can hide from users; slurmdbd.conf(5), PrivateData."""
MAIL_PROGRAM = "/usr/bin/mail"
"""What the packages of the role mail_relay bring."""
CHECK_GROUP = "phase_check"
"""Hosts with more to do than to keep a list, and the controllers: what others may do depends on them."""
JOBS_GROUP = "phase_jobs"
"""The controllers, who know which jobs there are."""


@dataclass(frozen=True)
class WiredVariables:
    """What follows from the whole site: variables by phase group, and by host where they differ."""

    shared: Mapping[str, Variables]
    by_host: Mapping[str, Variables]


def wired_variables(
    site: Site, contract: Mapping[str, Hardware], *, is_limited: bool = False
) -> WiredVariables:
    """For the whole site, whatever of it takes part in a run; ``is_limited`` when it is not all of it."""
    return WiredVariables(shared_variables(site, contract), _by_host(site, contract, is_limited=is_limited))


def write_inventory(
    path: Path,
    site: Site,
    plan: Plan,
    contract: Mapping[str, Hardware],
    repairs: Mapping[str, Variables] | None = None,
) -> None:
    """Writes the generated inventory source as JSON, which Ansible reads as YAML.

    ``repairs`` are variables by host for this run alone.
    """
    path.write_text(
        json.dumps(generated_inventory(site, plan, contract, repairs), indent=1), encoding="utf-8"
    )


def generated_inventory(
    site: Site,
    plan: Plan,
    contract: Mapping[str, Hardware],
    repairs: Mapping[str, Variables] | None = None,
) -> dict[str, Any]:
    """The generated inventory: ``{group: {hosts: {name: {variable: value}}}}``."""
    wired = wired_variables(site, contract, is_limited=plan.is_limited)
    controllers = [host.name for host in site.controllers]
    listening = listeners(members_of_phases(site, contract))
    groups: dict[str, Any] = {
        group: {"hosts": dict.fromkeys(hosts), "vars": wired.shared.get(group, {})}
        for group, hosts in plan.groups.items()
    }
    groups[CHECK_GROUP] = {
        "hosts": {
            name: wired.by_host[name]
            | host_expectations(site, site.hosts[name], contract, listening.get(name, ()))
            | (repairs or {}).get(name, {})
            for name in dict.fromkeys([*plan.checked, *controllers])
        },
        "vars": site_expectations(site, _entries(site)),
    }
    groups[JOBS_GROUP] = {"hosts": dict.fromkeys(controllers), "vars": {}}
    return {"all": {"children": groups}}


def _entries(site: Site) -> list[Variables]:
    """The lines of the hosts files."""
    return [
        {"address": address, "names": [host.name]}
        for host in site.cluster
        if is_ip(address := host.cluster_address)
    ]


def shared_variables(site: Site, contract: Mapping[str, Hardware]) -> Mapping[str, Variables]:
    """Variables that are the same on every host of a phase, by phase group."""
    controllers = [_named(host) for host in site.controllers]
    servers = [host.name for host in site.controllers]
    accounting = site.database_host.name
    backup = database_backup(site)
    auth_type = _value(site, "slurm_auth_type")
    known = known_nodes(site, contract)
    accounts = {
        "slurm_accounts_auth_type": auth_type,
        "slurm_accounts_cluster": _value(site, "slurmctld_cluster_name"),
        "slurm_accounts_database_name": site.database_host.value("slurmdbd_database_name"),
        **validation_accounting(site),
    }
    partition_nodes = _partition_nodes(site, contract)
    hardware = {name: hardware_of(site.hosts[name], contract) for name in known}
    return {
        "phase_names": {"hosts_file_entries": _entries(site)},
        "phase_accounting": {
            "slurmdbd_host": accounting,
            "slurmdbd_auth_type": auth_type,
            **tokens_of(site, "slurmdbd"),
            **({"slurmdbd_backup_host": backup} if backup else {}),
        },
        "phase_database_arbiter": arbiter_variables(site),
        "phase_qos": {"slurmdbd_host": accounting, **accounts},
        "phase_associations": {**accounts, "slurm_accounts_conf_servers": servers},
        "phase_account_groups": {
            "slurm_groups_cluster": _value(site, "slurmctld_cluster_name"),
            "slurm_groups_accounts": accounts_of_groups(site.database_host),
            "slurm_groups_conf_servers": servers,
        },
        "phase_budgets": {"slurm_budgets_directory": _value(site, "slurmctld_state_save_location")},
        "phase_controller": {
            "slurmctld_controllers": controllers,
            "slurmctld_database_host": accounting,
            "slurmctld_auth_type": auth_type,
            **tokens_of(site, "slurmctld"),
            **({"slurmctld_database_backup_host": backup} if backup else {}),
            "slurmctld_nodes": [_node(host, contract) for host in site.nodes if host.name in known],
            "slurmctld_task_prolog": task_prolog(site),
            **slurm_programs(site),
            "slurmctld_mail_program": MAIL_PROGRAM if _value(site, "mail_relay_host") else "",
            "slurmctld_x11": any(host.value("ssh_server_x11_forwarding") for host in site.logins),
            "slurmctld_added_partitions": validation_partitions(site),
            "slurmctld_partition_nodes": partition_nodes,
            "slurmctld_topology_nodes": topology_nodes(site, known),
        },
        "phase_reservations": {
            "slurm_reservations_nodes": _reserved_nodes(site, NodeSet.fromlist(sorted(known)))
        },
        "phase_compute": {"slurmd_auth_type": auth_type, "slurmd_conf_servers": servers},
        "phase_message": {
            "motd_cluster": _value(site, "slurmctld_cluster_name"),
            "motd_partitions": partitions_in_words(_partitions(site), partition_nodes, hardware),
        },
        "phase_log_server": {
            "log_server_senders": _networks(site),
            "log_server_names": senders_of_logs(site),
        },
        "phase_log_client": keeper_of_logs(site),
        "phase_proxy": {"proxy_direct": direct(site, _networks(site)), "proxy_package_caches": caches(site)},
        "phase_package_cache": {"package_cache_clients": _networks(site)},
        "phase_ssh_hosts": {"ssh_hosts_vouching": vouching(site)},
        "phase_firewall": {"firewall_peers": peers(site)},
        "phase_targets": scrape_targets(site, members_of_phases(site, contract)),
        "phase_backup": {
            "backup_version": __version__,
            "backup_cluster": _value(site, "slurmctld_cluster_name"),
            "backup_parts": {
                "state": _value(site, "slurmctld_state_save_location"),
                "database": site.database_host.value("slurmdbd_database_name"),
            },
            "backup_textfile_directory": (
                _value(site, "deploy_metrics_textfile_directory") if site.metrics else ""
            ),
        },
        "phase_login": {"slurm_client_auth_type": auth_type, "slurm_client_conf_servers": servers},
        "phase_containers": pulling(site),
        "phase_plugin_build": exchange(site),
        "phase_plugin": exchange(site),
    }


def _by_host(site: Site, contract: Mapping[str, Hardware], *, is_limited: bool) -> dict[str, Variables]:
    """Variables that differ between hosts."""
    members = members_of_phases(site, contract)
    listening = listeners(members)
    controllers = [host.cluster_address for host in site.controllers]
    networks = _networks(site)
    cluster = str(_value(site, "slurmctld_cluster_name"))

    def variables(host: Host) -> Variables:
        components = [component for phase, component in _SLURM_COMPONENTS if host.name in members[phase]]
        wired: Variables = {
            "slurm_packages_components": (
                [*components, "slurm-client"] if host.name in members["packages"] else []
            ),
            **access_of(site, host),
            **cache_of(site, host),
            **directory_of(site, host),
            **portal_variables(site, host),
            **registry_variables(site, host, networks),
            **rest_variables(site, host),
        }
        if host.name in members["controller"]:
            # chrony answers nobody whom it is not told of; the time is no secret.
            wired["time_sync_allow"] = networks or _EVERYBODY
            # Without a time server of its own the cluster at least agrees with its first controller.
            rank = site.controllers.index(host)
            wired["time_sync_local_stratum"] = _STRATUM_WITHOUT_UPSTREAM + rank
            if rank:
                wired["time_sync_servers"] = controllers[:rank]
        else:
            wired["time_sync_servers"] = controllers
        if host.name in members["accounting"]:
            hidden = _value(site, "slurmctld_private_data")
            wired["slurmdbd_private_data"] = [what for what in hidden if what in _ACCOUNTED]
        if host in site.nodes:
            # Known before the node's contract is, which it becomes a part of.
            wired["slurmd_scratch_directory"] = host.value("scratch_directory")
            wired["slurmd_gpus_by_name"] = finds_gpus(site, host)
            wired |= node_programs(host)
        if host.name in members["energy"]:
            wired["slurm_energy_sources"] = [*energy_sources(site)]
            wired["slurm_energy_measures"] = host in site.nodes
        if host.name in members["compute"]:
            wired["slurmd_contract"] = hardware_of(host, contract)
            wired["slurmd_required_mounts"] = required_mounts(site, host)
        wired |= software_variables(site, host, hardware_of(host, contract))
        wired |= source_variables(site, host)
        wired |= host_storage(site, host)
        wired |= gpu_variables(site, host)
        wired |= with_guarded(
            site, host, monitoring_variables(site, host, listening.get(host.name, ()), cluster)
        )
        phases = [phase for phase in PHASES if host.name in members[phase.name]]
        wired |= downloads(host, {role for phase in phases for role in phase.roles})
        wired["bootstrap_packages"] = _packages(host, phases, wired)
        own = host.variables
        chosen = {key: value for key, value in wired.items() if key not in own}
        return (
            chosen
            | member_variables(site, host, DATABASE_ACCOUNT)
            | plugin_lines(site, host, is_limited=is_limited)
            | not_brought(site, host, is_limited=is_limited)
        )

    return {host.name: variables(host) for host in site.cluster}


def _packages(host: Host, phases: Iterable[Phase], wired: Variables) -> list[str]:
    """The packages of a host's roles: their ``<role>_packages``, and Slurm's components.

    The names are wishes. One that a distribution does not have is left out on the host.
    """
    packages: list[str] = []
    for role in dict.fromkeys(role for phase in phases for role in phase.roles):
        name = "slurm_packages_components" if role == "slurm_packages" else f"{role}_packages"
        if name in options():
            value = host.variables.get(name, wired.get(name, options()[name].spec["default"]))
            # Of a release that the site chooses the role itself says first which one that is.
            if role == "slurm_packages" and (host.value("slurm_packages_version") or is_built(host)):
                continue
            # A template is known on the host only; the role installs what it says.
            packages += map(str, value) if isinstance(value, list) else []
    return [name for name in dict.fromkeys(packages) if "{" not in name]


def _networks(site: Site) -> list[str]:
    """The networks of the cluster's addresses: whole /24 or /64, so that a new node seldom changes them."""
    addresses = [ipaddress.ip_address(text) for host in site.cluster if is_ip(text := host.cluster_address)]
    networks = {
        ipaddress.ip_network(f"{address}/{24 if address.version == 4 else 64}", strict=False)  # noqa: PLR2004
        for address in addresses
    }
    return sorted(map(str, networks))


def known_nodes(site: Site, contract: Mapping[str, Hardware]) -> frozenset[str]:
    """The nodes whose contract is complete; slurm.conf cannot speak of the others yet."""
    return frozenset(node.name for node in site.nodes if is_discovered(node, contract))


def _named(host: Host) -> dict[str, str]:
    return {"name": host.name, "address": host.cluster_address}


def _node(host: Host, contract: Mapping[str, Hardware]) -> Variables:
    """What slurm.conf says of a compute node: its address, contract and scheduling wishes."""
    wishes = {
        key: host.variables[f"slurmd_{key}"]
        for key in ("features", "gpu_shards", "gpu_mps", "power_saving", "weight", "node_parameters")
        if host.variables.get(f"slurmd_{key}")
    }
    hardware = hardware_of(host, contract)
    if has_mig(host):
        hardware["gpus"] = slurm_gpus(host, hardware.get("gpus") or [])
        # The device files of instances have numbers that only the driver knows.
        wishes["gres_autodetect"] = "nvml"
    return {**_named(host), "hardware": hardware, "scratch": node_scratch(host), **wishes}


def _partition_nodes(site: Site, contract: Mapping[str, Hardware]) -> dict[str, Variables]:
    """For every partition its folded node list and the smallest memory per CPU (MiB) among its nodes."""
    known = NodeSet.fromlist(sorted(known_nodes(site, contract)))
    found: dict[str, Variables] = {}
    for partition in [*_partitions(site), *validation_partitions(site)]:
        inside = (members(site, partition) or known) & known
        memory = [_memory_per_cpu(hardware_of(site.hosts[name], contract)) for name in inside]
        found[partition["name"]] = {"nodes": slurm_list(inside)} | (
            {"memory_per_cpu_mb": min(memory)} if memory else {}
        )
    return found


def _reserved_nodes(site: Site, known: NodeSet) -> dict[str, str]:
    """By reservation that names nodes those that Slurm knows, as it writes them; empty for none yet."""
    named = {entry["name"]: members(site, entry) for entry in declared_reservations(site.controller)}
    return {name: slurm_list(nodes & known) for name, nodes in named.items() if nodes}


def _partitions(site: Site) -> list[Variables]:
    """The partitions that the inventory declares, else the role's default."""
    return list(_value(site, "slurmctld_partitions"))


def _value(site: Site, name: str) -> Any:  # noqa: ANN401 - a variable is whatever its role says
    """A controller variable: what the inventory says, else the role's default."""
    default = options()[name].spec["default"]
    return next((host.variables.get(name, default) for host in site.controllers), default)


def _memory_per_cpu(hardware: Hardware) -> int:
    return int(hardware["memory_mb"]) // int(hardware["cpus"])


def write_discovery(
    path: Path, site: Site, plan: Plan, contract: Mapping[str, Hardware], nodes: Iterable[Host]
) -> None:
    """Writes the inventory source of playbooks/discover.yml; ``nodes`` are asked what they have."""
    source = generated_inventory(site, plan, contract)
    groups = source["all"]["children"]
    groups["phase_discover"] = {"hosts": {node.name: None for node in nodes}}
    # Nodes of an earlier run are checked with the plan, which comes next and changes nothing either.
    for name in contract:
        groups[CHECK_GROUP]["hosts"].pop(name, None)
    path.write_text(json.dumps(source), encoding="utf-8")

"""The inventory of a rehearsal: a site's own names, groups and variables, on the machines of a lab.

It is written anew from what Ansible reads in the site's own inventory, so nothing of how the site's machines
are reached is in it: every ``ansible_`` variable is left behind, and so is what names servers outside.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import yaml
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from deploy.lab.recipe import ADMIN
from deploy.lab.site_files import IDENTITY, SSH_ARGUMENTS
from deploy.site.inventory import LOGIN, MASTER, NFS, NFS_CLIENT, NODE, Host, Site
from deploy.site.schema import options

MODULES = "/home/rehearsal/modulefiles"
"""Where stand-ins for the site's own module files lie on the machines."""

_SHARED = "/home"
_MEMORY_MB = 1024
_LEFT_BEHIND = frozenset(
    {
        # They name machines outside.
        "alertmanager_global",
        "alertmanager_receivers",
        "bootstrap_archive",
        "bootstrap_mirror",
        "grafana_prometheus_settings",
        "grafana_settings",
        "hosts_file_address",
        "log_client_ca",
        "network_mounts_filesystems",
        "nfs_client_mounts",
        "nfs_server_clients",
        "nfs_server_exports",
        "node_health_mounts",
        "package_cache_upstream_proxy",
        "prometheus_scrape_configs",
        "proxy_http",
        "proxy_https",
        "proxy_no_proxy",
        "slurm_accounts_database_host",
        "slurm_portal_oidc",
        "slurm_portal_prometheus_url",
        "slurm_registry_no_proxy",
        "slurm_registry_upstream_proxy",
        "slurm_registry_upstreams",
        "slurmdbd_database_host",
        "time_sync_servers",
        # Their other half is left behind, a secret, or a file of the site's hosts.
        "alertmanager_default_receiver",
        "alertmanager_routes",
        "log_server_certificate",
        "log_server_key",
        "slurm_portal_certificate",
        "slurm_portal_certificate_key",
        "slurm_registry_ca",
        "slurm_registry_certificate",
        "slurm_registry_certificate_key",
        "slurm_rest_certificate",
        "slurm_rest_certificate_key",
        # They need what containers have not: quotas of a file system, a GPU, InfiniBand, NVIDIA's repository.
        "container_toolkit_version",
        "dcgm_version",
        "mig_layout",
        "node_health_infiniband",
        "quotas_filesystems",
    }
)
_ROLES_LEFT_BEHIND = ("mail_relay_", "sssd_")
"""Mail of a rehearsal would come to people, and a directory would see logins without a password."""
_GROUPS_LEFT_BEHIND = frozenset({"all", "ungrouped", NFS, NFS_CLIENT})
_NETWORKS = ("firewall_admin_networks", "firewall_cluster_networks", "firewall_login_networks")
_SHARES = frozenset({"default_cpus_per_gpu", "default_memory_per_gpu_mb"})


@dataclass(frozen=True)
class Rehearsed:
    """What is rehearsed of a site: these hosts, with as many simulated GPUs each, and these directories."""

    site: Site
    hosts: tuple[Host, ...]
    gpus: Mapping[str, int]
    shared: tuple[str, ...]
    without: frozenset[str] = frozenset()
    """Groups that are empty in the rehearsal, by the will of the admin."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Hosts of the cluster that have no machine in the rehearsal."""
        chosen = {host.name for host in self.hosts}
        return tuple(host.name for host in self.site.cluster if host.name not in chosen)


def rehearsed(
    site: Site,
    shared: Iterable[str],
    *,
    most: int,
    gpus: int,
    without: Iterable[str] = (),
    whole: frozenset[str] = frozenset(),
) -> Rehearsed:
    """A site scaled down to at most ``most`` hosts of each kind, which are those in the same groups.

    ``gpus`` is how many a compute node has that the site declares none of. ``shared`` are directories,
    ``without`` groups that stay empty, ``whole`` groups of which no host is left out.
    """
    kinds: dict[frozenset[str], int] = {}
    hosts = []
    for host in site.cluster:
        kind = host.groups | _partitions_naming(site, host)
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= most or whole & host.groups:
            hosts.append(host)
    counts = {host.name: _gpus(host, gpus) for host in hosts if NODE in host.groups}
    return Rehearsed(site, tuple(hosts), counts, _outermost([_SHARED, *shared]), frozenset(without))


def _partitions_naming(site: Site, host: Host) -> frozenset[str]:
    """The partitions that name a host by itself: those that do so with others are of its kind."""
    listed = site.controller.value("slurmctld_partitions") or []
    return frozenset(f"partition {entry['name']}" for entry in listed if host.name in _nodes(entry))


def _nodes(partition: Mapping[str, Any]) -> NodeSet:
    try:
        return NodeSet(",".join(partition.get("nodes") or []), resolver=RESOLVER_NOGROUP)
    except NodeSetException:
        return NodeSet()


def _gpus(host: Host, undeclared: int) -> int:
    hardware = host.variables.get("slurmd_hardware") or {}
    declared = hardware.get("gpus")
    return undeclared if declared is None else sum(int(gpu["count"]) for gpu in declared)


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """The directories that lie in no other one of them."""
    listed = sorted({path.rstrip("/") or "/" for path in paths})
    return tuple(p for p in listed if not any(p.startswith(f"{other}/") for other in listed))


def inventory(
    what: Rehearsed,
    addresses: Mapping[str, IPv4Address],
    network: IPv4Network,
    *,
    release: str,
    cgroup_v1: bool,
) -> dict[str, Any]:
    """The inventory as Ansible's YAML has it: each host with all its variables, and the site's groups."""
    common = {
        "ansible_user": ADMIN,
        "ansible_become": True,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": IDENTITY,
        # Not the caller's own settings, in which a jump host may stand.
        "ansible_ssh_args": "-F none",
        "ansible_ssh_common_args": SSH_ARGUMENTS,
    }
    hosts = {
        host.name: {
            **_own(what.site, host),
            **_exceptions(what, host, network, release=release, cgroup_v1=cgroup_v1),
            **common,
            "ansible_host": str(addresses[host.name]),
        }
        for host in what.hosts
    }
    groups = {
        name: {"hosts": {member: None for member in members if member in hosts}}
        for name, members in what.site.groups.items()
        if name not in _GROUPS_LEFT_BEHIND | what.without
    }
    return {"all": {"hosts": hosts, "children": groups}}


def is_left_behind(name: str) -> bool:
    """Whether a variable of the site's is not of its rehearsal, whatever its value is."""
    return name in _LEFT_BEHIND or name.startswith(("ansible_", *_ROLES_LEFT_BEHIND))


def rehearsed_secrets(text: str) -> str:
    """The YAML of a secrets.yml without what is of variables that are left behind."""
    content = yaml.compose(text, Loader=yaml.SafeLoader)  # nodes: a value of the vault is as it was
    if not isinstance(content, yaml.MappingNode):
        return ""
    content.value = [(name, value) for name, value in content.value if not is_left_behind(name.value)]
    return str(yaml.serialize(content, Dumper=yaml.SafeDumper))


def vaulted(what: Rehearsed) -> list[str]:
    """The variables that cannot be rehearsed, because only the site's vault can open them."""
    return sorted(
        {name for host in what.hosts for name, value in host.variables.items() if _is_vaulted(value)}
    )


def _own(site: Site, host: Host) -> dict[str, Any]:
    """A host's variables but for those on how it is reached, of servers outside, secrets and the vault."""
    place = f"'{site.directory}'"
    specified = options()
    return {
        name: _placed(value, place)
        for name, value in host.variables.items()
        if not is_left_behind(name)
        and not (name in specified and specified[name].secret)
        and not _is_vaulted(value)
    }


def _placed(value: Any, place: str) -> Any:  # noqa: ANN401 - a variable is whatever its role says
    """A value whose templates find the files of the site from elsewhere."""
    if isinstance(value, str) and "{{" in value:
        return re.sub(r"\binventory_dir\b", place, value)
    if isinstance(value, list):
        return [_placed(entry, place) for entry in value]
    if isinstance(value, dict):
        return {key: _placed(entry, place) for key, entry in value.items()}
    return value


def _is_vaulted(value: Any) -> bool:  # noqa: ANN401 - a variable is whatever its role says
    return "__ansible_vault" in json.dumps(value, default=str)


def _exceptions(
    what: Rehearsed, host: Host, network: IPv4Network, *, release: str, cgroup_v1: bool
) -> dict[str, Any]:
    """What a host of a rehearsal has otherwise than the site's."""
    said: dict[str, Any] = {
        # One kernel and so one clock, which chrony must not set.
        "time_sync_options": "-F 1 -x",
        # Directories are one on all machines; homes are made once.
        "users_create_home": host.name == what.site.controller.name,
        "environment_modules_shared": [*(host.value("environment_modules_shared") or []), MODULES],
        # Stand-ins take CUDA's place.
        "cuda_toolkit_versions": [],
        # The limit of a container cannot be raised.
        "rdma_memlock": "40",
        "nvidia_driver_source": "none",
        "gpu_exporter_source": "none",
        # Its packages are Grafana's own, from outside.
        "grafana_source": "none",
    }
    said |= {name: [str(network)] for name in _NETWORKS if name in host.variables}
    if MASTER in host.groups:
        said |= _of_controller(what, host, release=release, cgroup_v1=cgroup_v1)
    if LOGIN in host.groups:
        # A container sees the memory of its whole host, of which a part is too much.
        said["login_limits_memory"] = "512M"
    if NODE in host.groups:
        declared = host.variables.get("slurmd_hardware") or {}
        said["slurmd_hardware"] = {
            # Several nodes must not all promise the memory of one machine.
            "memory_mb": min(_MEMORY_MB, int(declared.get("memory_mb", _MEMORY_MB))),
            **({"gpus": declared["gpus"]} if "gpus" in declared else {}),
        }
    return said


def _of_controller(what: Rehearsed, host: Host, *, release: str, cgroup_v1: bool) -> dict[str, Any]:
    chosen = {name.name for name in what.hosts}
    cgroup = dict(host.value("slurmctld_cgroup_parameters") or {})
    if cgroup_v1:
        # Slurm cannot find the version out by itself in a container, and cannot mount it again (22.05).
        cgroup |= {"CgroupPlugin": "cgroup/v1"} | ({"CgroupAutomount": "no"} if release == "bookworm" else {})
    partitions = [
        {**_without_shares(entry), "nodes": [name for name in _nodes(entry) if name in chosen]}
        if entry.get("nodes")
        else _without_shares(entry)
        for entry in host.value("slurmctld_partitions")
    ]
    return {"slurmctld_cgroup_parameters": cgroup, "slurmctld_partitions": partitions}


def _without_shares(partition: Mapping[str, Any]) -> dict[str, Any]:
    """A partition whose GPUs come without CPUs and memory, of which a container has too few for all."""
    return {key: value for key, value in partition.items() if key not in _SHARES}


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Writes the inventory, for its owner alone: a site's variables may be secrets."""
    text = yaml.safe_dump(json.loads(json.dumps(content, default=str)), sort_keys=False, width=110)
    path.touch(mode=0o600)
    path.write_text(f"# A rehearsal on local containers, made by: deploy rehearse\n{text}", encoding="utf-8")

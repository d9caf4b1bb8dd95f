"""What a validation asks the hosts, and which jobs it runs: playbooks/validate.yml's inventory."""

import json
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from deploy.plan.access_vars import access_of, admin_groups
from deploy.plan.catalog import members
from deploy.plan.gpu_vars import has_mig
from deploy.plan.questions import services_by_host
from deploy.plan.slurm_ports import first_slurm_port
from deploy.plan.validation_vars import validation_user
from deploy.site.addresses import is_ip
from deploy.site.hardware import Hardware, hardware_of
from deploy.site.inventory import NFS, Host, Site
from deploy.site.storage import has_shared_homes, mount_paths
from deploy.validate import programs
from deploy.validate.answers import PORTAL
from deploy.validate.benchmarks import module_with_torch
from deploy.validate.declared import declared_groups, declared_quotas, declared_users
from deploy.validate.monitoring_questions import monitoring_questions, watcher
from deploy.validate.thresholds import Thresholds

_CREDENTIALS = 100
"""More hosts than that do not decode each other's credentials all; the first controller's is among them."""
_NAMES = 100
"""So many names a host is asked for beside the controllers' and login nodes': those that follow its own."""
_NEIGHBOURS = 16
"""To so many other nodes a node's ways are tried; job steps reach their nodes through each other."""
_LIMIT_SECONDS = 120
_SECONDS, _SECONDS_PER_NODE = 240, 3
_MEASURED = frozenset({"nccl", "nvbandwidth", "dcgm", "training", "burn-in"})
_MEASURING_SECONDS, _MEASURING_SECONDS_PER_NODE = 1800, 60
_PORTAL_SECONDS = 240
_PORTS = range(20_000, 30_000)
_MEMORY_SHARE = 0.8

Item = TypeVar("Item")


@dataclass(frozen=True)
class Questions:
    """What was asked: the name of everything that the validation made, and what only it can know."""

    marker: str
    nonce: str
    plan: Mapping[str, Any] | None
    """What the jobs were planned to be; None where none were."""


def closed_nodes(site: Site, contract: Mapping[str, Hardware]) -> tuple[Host, ...]:
    """The compute nodes that let in only admins, and users with a job there."""
    hosts = [host for host in members(site, contract, "compute") if host not in site.logins]
    return tuple(host for host in hosts if host.value("job_ssh_admits") != "everyone")


def write_questions(
    path: Path,
    site: Site,
    contract: Mapping[str, Hardware],
    kinds: Collection[str],
    *,
    thresholds: Thresholds | None = None,
    burn_in_seconds: float = 0,
) -> Questions:
    """Writes the inventory source; returns what the answers are compared with."""
    names = [node.name for node in site.nodes]
    portal = _portal(site) if PORTAL in kinds else {}
    kinds = {*kinds} - {PORTAL}
    questions = _questions(
        site, contract, kinds, names, thresholds=thresholds, burn_in_seconds=burn_in_seconds
    )
    hosts = _by_host(site, contract)
    shared = {**_shared(site, contract, {*hosts}), **_shared_of_jobs(site, questions, kinds)}
    watched = {watcher(site).name: monitoring_questions(site, contract)}
    jobs, afterwards = _jobs(site, questions, kinds, burn_in_seconds)
    _write(path, shared, hosts, monitoring=watched, jobs=jobs, portal=portal, afterwards=afterwards)
    return questions


def write_job_questions(
    path: Path,
    site: Site,
    contract: Mapping[str, Hardware],
    kinds: Collection[str],
    names: Collection[str],
    *,
    reservation: str,
    thresholds: Thresholds,
    burn_in_seconds: float = 0,
) -> Questions:
    """The same for jobs on some nodes alone, in a reservation; of other hosts the controllers are asked."""
    nodes = [node.name for node in site.nodes if node.name in names]
    questions = _questions(
        site,
        contract,
        kinds,
        nodes,
        reservation=reservation,
        thresholds=thresholds,
        burn_in_seconds=burn_in_seconds,
    )
    asked = {*nodes, *(host.name for host in site.controllers)}
    hosts = {name: variables for name, variables in _by_host(site, contract).items() if name in asked}
    shared = {**_shared(site, contract, {*hosts}), **_shared_of_jobs(site, questions, kinds)}
    jobs, afterwards = _jobs(site, questions, kinds, burn_in_seconds)
    _write(path, shared, hosts, jobs=jobs, afterwards=afterwards)
    return questions


def _questions(
    site: Site,
    contract: Mapping[str, Hardware],
    kinds: Collection[str],
    nodes: Collection[str],
    *,
    reservation: str = "",
    thresholds: Thresholds | None,
    burn_in_seconds: float,
) -> Questions:
    """Names that nobody has had before, and the plan of the jobs on those nodes."""
    number = secrets.token_hex(4)
    marker, nonce = f"deploy-validate-{number}", secrets.token_hex(16)
    user = validation_user(site)
    plan = None
    if user and kinds:
        own = {"partition": user, "marker": marker, "nonce": nonce, "kinds": sorted(kinds)}
        plan = {**own, **_plan(site, contract, nodes)}
        if reservation:
            plan["reservation"] = reservation
        if _MEASURED & {*kinds}:
            plan["performance"] = {
                **_measurements(site, contract, thresholds or Thresholds()),
                "burn_in_seconds": burn_in_seconds,
            }
    return Questions(marker, nonce, plan)


def _shared_of_jobs(site: Site, questions: Questions, kinds: Collection[str]) -> dict[str, Any]:
    """The variables by which what jobs left is found."""
    return {
        "validation_leftovers": {"user": validation_user(site), "marker": questions.marker},
        "validation_has_load": "burn-in" in kinds,
    }


def _jobs(
    site: Site, questions: Questions, kinds: Collection[str], burn_in_seconds: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Who starts the jobs, and where is looked for what they left; nobody and nowhere without a plan."""
    if questions.plan is None:
        return {}, {}
    nodes = questions.plan["nodes"]
    starts = {
        "validation_plan": questions.plan,
        "validation_user": questions.plan["partition"],
        "validation_seconds": _seconds(len(nodes), kinds, burn_in_seconds),
    }
    return {site.logins[0].name: starts}, dict.fromkeys(nodes)


def _portal(site: Site) -> dict[str, Any]:
    """The host of the portal and what it is asked; nobody where the site has none, or no user for it."""
    user = validation_user(site)
    asked = {"validation_portal": {"user": user, "seconds": _PORTAL_SECONDS}}
    return {host.name: asked for host in members(site, {}, "portal")} if user else {}


def write_host_questions(
    path: Path, site: Site, contract: Mapping[str, Hardware], names: Collection[str]
) -> Questions:
    """The same for some hosts alone, without jobs and without the monitoring."""
    chosen = {name: asked for name, asked in _by_host(site, contract).items() if name in names}
    _write(path, _shared(site, contract, {*chosen}), chosen)
    return Questions("", "", None)


def write_repair_question(path: Path, site: Site, contract: Mapping[str, Hardware]) -> str:
    """Asks the monitoring alone which nodes are to be repaired; gives the name of the host that is asked."""
    shared = {**_shared(site, contract, set()), "validation_monitoring_function": "unfit"}
    host = watcher(site).name
    _write(path, shared, {}, monitoring={host: monitoring_questions(site, contract)})
    return host


def _shared(site: Site, contract: Mapping[str, Hardware], names: set[str]) -> dict[str, Any]:
    """The variables that all hosts have, where those of ``names`` are asked."""
    makers = [host.name for host in members(site, contract, "packages") if host.name in names]
    return {
        "validation_programs": str(Path(programs.__file__).parent),
        "validation_makers": makers[:_CREDENTIALS],
        "validation_began": int(time.time()),
        "validation_monitoring_function": "ask",
    }


def _write(
    path: Path,
    shared: Mapping[str, Any],
    hosts: Mapping[str, Any],
    *,
    monitoring: Mapping[str, Any] | None = None,
    jobs: Mapping[str, Any] | None = None,
    portal: Mapping[str, Any] | None = None,
    afterwards: Mapping[str, Any] | None = None,
) -> None:
    """The hosts of each play, with their variables; a play without hosts is left out by Ansible."""
    children = {
        "phase_validation": {"hosts": hosts},
        "phase_validation_jobs": {"hosts": jobs or {}},
        "phase_validation_portal": {"hosts": portal or {}},
        "phase_validation_afterwards": {"hosts": afterwards or {}},
        "phase_validation_monitoring": {"hosts": monitoring or {}},
    }
    path.write_text(json.dumps({"all": {"children": children, "vars": shared}}), encoding="utf-8")


def _by_host(site: Site, contract: Mapping[str, Hardware]) -> dict[str, dict[str, Any]]:
    """The variables of every host: what it is asked."""
    services = services_by_host(site, contract)
    controllers, nodes = ({host.name for host in hosts} for hosts in (site.controllers, site.nodes))
    in_slurm = {host.name for host in members(site, contract, "packages")}
    closed = {host.name for host in closed_nodes(site, contract)}
    servers = {*site.groups.get(NFS, ())}
    names, peers = _Names(site), _Peers(site)
    user = validation_user(site)
    addresses = {host.name: host.cluster_address for host in site.cluster if is_ip(host.cluster_address)}

    def variables(host: Host) -> dict[str, Any]:
        is_controller, is_in_slurm = host.name in controllers, host.name in in_slurm
        known = [*names.of(host.name), host.name]
        own_peers = peers.of(host.name) if is_in_slurm else []
        asked: dict[str, Any] = {
            "validation_surroundings": {
                "user": user,
                "users": sorted({*declared_users(host), "slurm"} if is_in_slurm else {*declared_users(host)}),
                "groups": sorted(declared_groups(host)),
                "addresses": {name: addresses[name] for name in known if name in addresses},
            },
            "validation_system": {
                "user": user if has_shared_homes(site, host) else None,
                "quotas": [*declared_quotas(host)],
                "serves_quotas": bool(declared_quotas(host)) and host.name in servers,
                "exports": host.name in servers,
            },
            "validation_packets": [peer for peer in own_peers if peer[0] != host.name],
            "validation_services": services[host.name],
            "validation_asks_slurm": is_controller,
            "validation_look": {
                "auth_type": str(host.value("slurm_auth_type")) if is_in_slurm else "",
                "names": names.of(host.name),
                "peers": own_peers,
                "mounts": mount_paths(site, host),
                "directories": ["/", "/tmp", "/var", "/home"],  # noqa: S108 - it is looked at, not written
                "asks_slurm": is_controller,
            },
        }
        if host.name in nodes and (declared := hardware_of(host, contract)):
            asked["validation_contract"] = declared
        if host.name in closed:
            asked["validation_admins"] = {
                "connecting": access_of(site, host).get("job_ssh_connecting_user", ""),
                "users": host.value("job_ssh_admin_users"),
                "groups": admin_groups(host),
            }
        return asked

    return {host.name: variables(host) for host in site.cluster}


class _Names:
    """Whose addresses a host is asked for: every name is looked up on many hosts, and none on too many."""

    def __init__(self, site: Site) -> None:
        self._all = [host.name for host in site.cluster if is_ip(host.cluster_address)]
        known = {*self._all}
        self._heads = [host.name for host in (*site.controllers, *site.logins) if host.name in known]
        self._places = {name: place for place, name in enumerate(self._all)}

    def of(self, name: str) -> list[str]:
        """The names, in no order that matters, each once."""
        first = self._places.get(name, -1) + 1
        return list(dict.fromkeys([*self._heads, *_around(self._all, first, _NAMES)]))


class _Peers:
    """Whom a host of Slurm must be able to reach: the controllers, and of the nodes those that follow it."""

    def __init__(self, site: Site) -> None:
        self._controllers = _listening(site, site.controllers, "SlurmctldPort")
        self._nodes = _listening(site, site.nodes, "SlurmdPort")
        self._places = {node[0]: place for place, node in enumerate(self._nodes)}

    def of(self, name: str) -> list[list[Any]]:
        """Name, address and port of each."""
        following = _around(self._nodes, self._places.get(name, -1) + 1, _NEIGHBOURS)
        return [*self._controllers, *(peer for peer in following if peer[0] != name)]


def _listening(site: Site, hosts: Iterable[Host], parameter: str) -> list[list[Any]]:
    """Name, address and port of each; none where the port is a template, which only hosts can know."""
    port = first_slurm_port(site, parameter)
    return [[host.name, host.cluster_address, int(port)] for host in hosts if port.isdigit()]


def _around(everybody: Sequence[Item], first: int, count: int) -> list[Item]:
    """So many of a ring, from one place on; each once at most."""
    following = everybody[first : first + count]
    return [*following, *everybody[: min(first, count - len(following))]]


def _seconds(nodes: int, kinds: Collection[str], burn_in_seconds: float) -> int:
    """For how long one waits for the jobs on so many nodes."""
    seconds = _SECONDS + _SECONDS_PER_NODE * nodes
    if _MEASURED & {*kinds}:
        seconds += _MEASURING_SECONDS + _MEASURING_SECONDS_PER_NODE * nodes + int(burn_in_seconds)
    return seconds


def _measurements(site: Site, contract: Mapping[str, Hardware], thresholds: Thresholds) -> dict[str, Any]:
    """What the jobs that measure must know of the site."""
    hardware = {node.name: hardware_of(node, contract) for node in site.nodes}
    wanted = thresholds.benchmarks.plan(thresholds.bus_bandwidth_percent)
    if "python" not in thresholds.benchmarks.own:
        modules = [*module_with_torch(site.logins[0].value("ml_stack_environments"))]
        wanted["tools"]["python"]["modules"] = modules[-1:]
    return {
        **wanted,
        "gpu_kinds": {name: kind_of_gpus(has) for name, has in hardware.items()},
        "memory_mb": {
            name: _MEMORY_SHARE * float(has.get("memory_mb") or 0) for name, has in hardware.items()
        },
        "port": secrets.choice(_PORTS),
    }


def kind_of_gpus(hardware: Mapping[str, Any]) -> str:
    """The GPUs of a node in a word, as in a100x4."""
    return "+".join(f"{gpu['type']}x{gpu['count']}" for gpu in hardware.get("gpus") or [])


def _plan(site: Site, contract: Mapping[str, Hardware], nodes: Collection[str]) -> dict[str, Any]:
    """What the jobs on those nodes must know of the site."""
    hardware = {node.name: hardware_of(node, contract) for node in site.nodes if node.name in nodes}
    divided = {node.name for node in site.nodes if has_mig(node)}
    gpus = {name: sum(int(gpu["count"]) for gpu in has.get("gpus") or []) for name, has in hardware.items()}
    return {
        "limit_seconds": _LIMIT_SECONDS,
        "nodes": list(hardware),
        "gpus": {name: count for name, count in gpus.items() if count and name not in divided},
        "divided": [name for name in hardware if name in divided],
        "ssh_nodes": [host.name for host in closed_nodes(site, contract) if host.name in hardware],
        "container_nodes": [host.name for host in site.containers if host.name in hardware],
        "has_mpi": bool(members(site, contract, "mpi")),
    }

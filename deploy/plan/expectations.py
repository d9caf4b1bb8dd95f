"""What every host is compared with before anything on it changes, as variables for playbooks/check.yml.

Pure: from the inventory, the roles' defaults and the hardware contract. The module host_check compares.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from deploy.plan import requirements
from deploy.plan.declarations import listening
from deploy.plan.gpu_vars import has_managed_gpus, types_by_name
from deploy.plan.requirements import Room
from deploy.plan.slurm_ports import slurm_ports
from deploy.plan.slurm_source import is_built, packages_of
from deploy.site.hardware import Hardware, hardware_of
from deploy.site.inventory import LOGIN, LOGS, MASTER, NODE, Host, Site
from deploy.site.slurm_parameters import slurm_parameter, told_node_name
from deploy.site.slurm_releases import slurm_needs

Variables = dict[str, Any]

_CHRONY_MUST_NOT_SET = "-x"
_KERNEL_NAME = 15
_ALL_MAY_WRITE = (PurePosixPath("/tmp"), PurePosixPath("/var/tmp"))  # noqa: S108 - they are looked at


def site_expectations(site: Site, entries: list[Variables]) -> Variables:
    """What is the same for all hosts; ``entries`` are the names that the role hosts_file will write."""
    listed = {name for entry in entries for name in entry["names"]}
    shared = {
        "systems": {name: list(versions) for name, versions in requirements.SYSTEMS.items()},
        "names_to_look_up": [host.name for host in site.cluster if host.name not in listed],
        "controllers": [host.name for host in site.controllers],
    }
    return {"host_check_site": shared, "host_check_entries": entries}


def host_expectations(
    site: Site, host: Host, contract: Mapping[str, Hardware], listeners: Iterable[str] = ()
) -> Variables:
    """What only this host is compared with; ``listeners`` are the roles that listen there on their port."""
    duties = _Duties(site, host)
    own = {
        "name": host.name,
        "hostname": duties.hostname,
        "removes_loopback_name": host.value("hosts_file_remove_loopback_name"),
        "clock": {**requirements.CLOCK_SECONDS, "is_steered": duties.clock_is_steered},
        "disks": [{"path": path, **asdict(room)} for path, room in duties.rooms()],
        "scratch": duties.scratch,
        "memory_mb": asdict(requirements.CONTROLLER_MEMORY if duties.is_controller else requirements.MEMORY),
        "ports": [*host_ports(site, host, listeners)],
        "packages": list(duties.packages()),
        "hardware": hardware_of(host, contract) if duties.is_node else {},
        "gpu_types_by_name": types_by_name(site, host, hardware_of(host, contract).get("gpus") or []),
        "archive": host.value("bootstrap_archive"),
        "apt_options": _apt_options(host),
        "installs_gpu_driver": has_managed_gpus(host),
        "slurm_is_built": is_built(host),
        "slurm_has_other_source": bool(host.value("slurm_packages_repository")),
        "slurm_wanted": str(host.value("slurm_packages_version")),
        "slurm_needs": slurm_needs(site.resolved, host),
        "has_slurmd": duties.is_node,
        "has_central_logs": bool(site.group(LOGS)),
        "cluster": duties.cluster if duties.has_slurm else "",
        "state_location": duties.state_location if duties.is_controller else "",
    }
    return {"host_check_host": own}


def _apt_options(host: Host) -> str:
    """The proxies that apt is going to have, without passwords, as ``apt-config dump`` writes them."""
    found = []
    for scheme in ("http", "https"):
        url = urlsplit(str(host.variables.get(f"proxy_{scheme}") or ""))
        if url.hostname and "{{" not in url.netloc:
            place = url.netloc.rpartition("@")[2]
            found.append(f'Acquire::{scheme}::Proxy "{url.scheme}://{place}";\n')
    return "".join(found)


def host_ports(site: Site, host: Host, listeners: Iterable[str]) -> Iterator[Variables]:
    """The ports that daemons of deploy's listen on there, with what moves them; ``listeners`` as above."""
    yield from _Duties(site, host).ports()
    yield from _declared_ports(host, listeners)


def expected_hostname(site: Site, host: Host) -> str:
    """What a machine has to call itself; empty where that does not matter."""
    return _Duties(site, host).hostname


@dataclass(frozen=True)
class _Duties:
    """What a host does in the cluster, and what it needs for that."""

    site: Site
    host: Host

    @property
    def is_controller(self) -> bool:
        return MASTER in self.host.groups

    @property
    def has_database(self) -> bool:
        return self.host in self.site.database_hosts

    @property
    def has_accounting(self) -> bool:
        return self.host in self.site.accounting_hosts

    @property
    def is_node(self) -> bool:
        return NODE in self.host.groups

    @property
    def has_slurm(self) -> bool:
        return self.is_controller or self.has_accounting or self.is_node or LOGIN in self.host.groups

    @property
    def hostname(self) -> str:
        """What the machine has to call itself so that Slurm's daemons find themselves in slurm.conf."""
        if self.is_controller:
            return self.host.name
        if not self.is_node or told_node_name(self.host):
            return ""
        return str(self.host.value("slurmd_node_parameters").get("NodeHostname", self.host.name))

    @property
    def clock_is_steered(self) -> bool:
        return _CHRONY_MUST_NOT_SET not in str(self.host.value("time_sync_options")).split()

    @property
    def cluster(self) -> str:
        return str(self._controller.value("slurmctld_cluster_name"))

    @property
    def state_location(self) -> str:
        return self._parameter("StateSaveLocation", self._controller.value("slurmctld_state_save_location"))

    @property
    def scratch(self) -> list[str]:
        """Where jobs write; nothing where they may fill the root file system, or users have limits there."""
        if not self.is_node or self.host.value("scratch_may_fill_root") or self._limits_root:
            return []
        private = [PurePosixPath(path) for path in self.host.value("scratch_private_directories")]
        shared = [path for path in _ALL_MAY_WRITE if not any(path.is_relative_to(own) for own in private)]
        return [str(self.host.value("scratch_directory")), *map(str, shared)]

    @property
    def _limits_root(self) -> bool:
        limited = [each for each in self.host.value("quotas_filesystems") if each.get("path") == "/"]
        return any(each.get("each_user", {}).get("space") for each in limited)

    def rooms(self) -> Iterator[tuple[str, Room]]:
        """Directories that will be written to, and the room they need."""
        yield from requirements.EVERYWHERE.items()
        if self.is_node:
            spool = self._parameter("SlurmdSpoolDir", "/var/spool/slurmd")
            # What is fixed of a path with a node's name in it.
            yield spool.partition("%")[0], requirements.NODE_SPOOL
        if self.is_controller:
            yield self.state_location, requirements.CONTROLLER_STATE
        if self.has_database:
            yield requirements.DATABASE_DIRECTORY, requirements.DATABASE

    def ports(self) -> Iterator[Variables]:
        """Ports that daemons of this host listen on, and the variables that move them."""
        if self.is_controller:
            yield from self._slurm_ports("slurmctld", "SlurmctldPort")
        if self.has_database:
            database = self.host.value("mariadb_parameters").get("port", 3306)
            yield from _ports("mariadbd", database, setting="mariadb_parameters: {port: …}")
        if self.is_controller:
            # One that is there is replaced by the package of chrony.
            yield from _ports("chronyd", 123, protocol="udp", also=("ntpd",))
        if self.is_node:
            yield from self._slurm_ports("slurmd", "SlurmdPort")

    def packages(self) -> Iterator[str]:
        """The packages without which a run would have to install some; named alike in all distributions."""
        yield from ("python3-apt", "chrony")
        if self.has_slurm:
            yield "munge"
            yield from packages_of(self.host, self._components())
        if self.has_database:
            yield from self.host.value("mariadb_packages")

    def _components(self) -> Iterator[str]:
        yield "slurm-client"
        if self.is_controller:
            yield "slurmctld"
        if self.has_accounting:
            yield "slurmdbd"
        if self.is_node:
            yield "slurmd"

    @cached_property
    def _controller(self) -> Host:
        return self.site.controller

    def _parameter(self, name: str, default: object) -> str:
        """A parameter of slurm.conf: what slurmctld_parameters says of it wins."""
        return slurm_parameter(self._controller, name) or str(default)

    def _slurm_ports(self, daemon: str, parameter: str) -> Iterator[Variables]:
        setting = f"slurmctld_parameters: {{{parameter}: …}}"
        yield from _ports(daemon, slurm_ports(self.site, parameter), setting=setting)


def _declared_ports(host: Host, roles: Iterable[str]) -> Iterator[Variables]:
    """Those of roles that say what listens on their port."""
    for role in roles:
        if said := listening(role):
            (program, *others), setting = said.programs, f"{role}_port"
            # The kernel cuts the names of processes.
            also = dict.fromkeys([program[:_KERNEL_NAME], *others])
            also.pop(program, None)
            yield from _ports(program, host.value(setting), setting=setting, also=tuple(also))


def _ports(
    daemon: str, numbers: object, *, protocol: str = "tcp", setting: str = "", also: tuple[str, ...] = ()
) -> Iterator[Variables]:
    """One entry for each port of a number or, as slurm.conf allows, a range; none where it is a template."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", str(numbers))
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    for port in range(first, last + 1):
        programs = [daemon, *also]
        yield {"port": port, "protocol": protocol, "daemon": daemon, "programs": programs, "setting": setting}

"""What a site asks of Slurm that not every release knows, and from which release on one does.

The releases and words are in roles/slurmctld/vars/main.yml, because the role refuses, too; here is who asks.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from deploy.content import read_data, roles
from deploy.errors import Finding
from deploy.site.inventory import LOGIN, MASTER, NODE, Host, Site
from deploy.site.schema import default_of

_VERSION = "slurm_packages_version"
_TABLE = "__slurmctld_needs"
_WORDS = ("setting", "since", "older", "instead")

Asking = tuple[Host, str]
"""A host, and its variable that asks."""


def slurm_needs(site: Site, host: Host) -> list[dict[str, str]]:
    """What the Slurm of a host has to know; nothing on a host whose release does not matter for it."""
    return [
        {word: str(need[word]) for word in _WORDS}
        for name, need in _needs().items()
        if _matters(site, host, str(need["hosts"])) and _asking(site, name)
    ]


def check_slurm_releases(site: Site) -> Iterator[Finding]:
    """Where the site says no release, hosts are asked which theirs is before anything changes."""
    if not site.controllers:
        return
    version = str(site.controller.value(_VERSION))
    release = _release(version)
    if not release:
        return
    for name, need in _needs().items():
        asking = _asking(site, name)
        since = str(need["since"])
        if asking and release < _release(since):
            host, variable = asking
            yield Finding(
                host.where(variable),
                "slurm-too-old",
                f"{need['setting']} takes Slurm {since} or later, and {_VERSION} is {version}: "
                f"{need['older']}",
                str(need["instead"]),
            )


def _release(text: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else ()


@cache
def _needs() -> Mapping[str, Mapping[str, Any]]:
    table: Mapping[str, Mapping[str, Any]] = read_data(roles() / "slurmctld" / "vars" / "main.yml")[_TABLE]
    return table


def _matters(site: Site, host: Host, hosts: str) -> bool:
    if hosts == "controllers":
        return MASTER in host.groups
    if hosts == "nodes":
        return bool({MASTER, NODE} & {*host.groups})
    return bool({MASTER, NODE, LOGIN} & {*host.groups}) or host in site.accounting_hosts


def _asking(site: Site, name: str) -> Asking | None:
    return next(iter(_ASKS[name](site)), None)


def _says(
    of: Callable[[Site], tuple[Host, ...]], variable: str, is_asked: Callable[[Any], bool], site: Site
) -> Iterator[Asking]:
    yield from ((host, variable) for host in of(site) if is_asked(host.value(variable)))


def _by_nvml(site: Site) -> Iterator[Asking]:
    yield from _says(_controllers, "slurmctld_gres_autodetect", "nvml".__eq__, site)
    yield from _says(_nodes, "mig_layout", bool, site)


def _controllers(site: Site) -> tuple[Host, ...]:
    return site.controllers


def _nodes(site: Site) -> tuple[Host, ...]:
    return site.nodes


def _cluster(site: Site) -> tuple[Host, ...]:
    return site.cluster


_ASKS: Mapping[str, Callable[[Site], Iterator[Asking]]] = {
    "auth_by_slurm": partial(_says, _controllers, "slurm_auth_type", "auth/slurm".__eq__),
    "gpus_by_nvidia": partial(_says, _controllers, "slurmctld_gres_autodetect", "nvidia".__eq__),
    "gpus_by_nvml": _by_nvml,
    "gpu_shards": partial(_says, _nodes, "slurmd_gpu_shards", bool),
    "private_directories": partial(
        _says,
        _nodes,
        "scratch_private_directories",
        lambda value: bool(value != default_of("scratch_private_directories")),
    ),
    "power_saving": partial(_says, _nodes, "slurmd_power_saving", bool),
    "registered_addresses": partial(_says, _controllers, "slurmctld_cloud_addresses", "registered".__eq__),
    "command_filter": partial(
        _says, _controllers, "slurmctld_cli_filter_lua", lambda value: bool(str(value or "").strip())
    ),
    "mpi_by_pmix": partial(
        _says, _controllers, "slurmctld_mpi_default", lambda value: str(value).startswith("pmix")
    ),
    "open_mpi": partial(_says, _cluster, "openmpi_packages", bool),
}

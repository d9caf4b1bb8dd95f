"""What a host's GPU roles must know of its other roles, and of the cluster around it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from deploy.site.inventory import NODE, Host, Site

_FROM_NVIDIA = "nvidia"
_NOT_OURS = frozenset({"none", "preinstalled"})
_FIND_GPUS = frozenset({"nvml", "nvidia"})
_DCGM, _NVITOP = "dcgm", "nvitop"
_BEFORE_EXPORTER = "3."
"""The series of DCGM for which NVIDIA's repository has no exporter."""


def gpu_variables(site: Site, host: Host) -> dict[str, Any]:
    """The repositories that the host's roles want, and who drains it before a reboot."""
    wired: dict[str, Any] = {}
    if wanted := list(_repositories(site, host)):
        wired["nvidia_repository_wanted"] = wanted
    if has_gpu_exporter(site, host):
        wired["gpu_exporter_has_dcgm"] = _has_exporter_of_dcgm(host)
        # NVIDIA's package brings what it needs.
        wired |= {"gpu_exporter_packages": []} if _exporter(host) == _DCGM else {}
    if has_dcgm(host):
        wired["dcgm_driver"] = _driver(host)
    if has_managed_gpus(host) or has_mig(host) or (NODE in host.groups and has_cuda(host)):
        wired |= {"reboot_controller": site.controller.name, "reboot_node": host.name}
    return wired


def _driver(host: Host) -> str:
    version = host.value("nvidia_driver_version") or host.value("nvidia_driver_branch")
    return f"{host.value('nvidia_driver_source')} {version}".strip()


def _repositories(site: Site, host: Host) -> Iterator[str]:
    takes_driver = has_managed_gpus(host) and host.value("nvidia_driver_source") == _FROM_NVIDIA
    takes_cuda = has_cuda(host) and host.value("cuda_toolkit_source") == _FROM_NVIDIA
    takes_exporter = has_gpu_exporter(site, host) and _exporter(host) == _DCGM
    if takes_driver or takes_cuda or takes_exporter or has_dcgm(host):
        yield "cuda"
    if has_container_toolkit(host):
        yield "container"


def has_cuda(host: Host) -> bool:
    """Whether the site lists versions of CUDA for a host."""
    return bool(host.value("cuda_toolkit_versions"))


def has_dcgm(host: Host) -> bool:
    """Whether the site says which DCGM a host has."""
    return bool(host.value("dcgm_version"))


def has_gpu_exporter(site: Site, host: Host) -> bool:
    """Whether a compute node reports its GPUs: somebody watches, and there is a driver to ask."""
    return bool(site.metrics) and NODE in host.groups and _exporter(host) != "none"


def _exporter(host: Host) -> str:
    """Which exporter a host has; without a driver none has anything to tell."""
    source = str(host.value("gpu_exporter_source"))
    if source != "auto":
        return source
    if _has_exporter_of_dcgm(host):
        return _DCGM
    return "none" if host.value("nvidia_driver_source") == "none" else _NVITOP


def _has_exporter_of_dcgm(host: Host) -> bool:
    version = str(host.value("dcgm_version"))
    return bool(version) and not version.startswith(_BEFORE_EXPORTER)


def has_container_toolkit(host: Host) -> bool:
    """Whether the site says which container toolkit a host has."""
    return bool(host.value("container_toolkit_version"))


def has_mig(host: Host) -> bool:
    """Whether the site divides GPUs of a compute node."""
    return NODE in host.groups and bool(host.value("mig_layout"))


def slurm_gpus(host: Host, gpus: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What Slurm offers of a node's GPUs: those that are divided as so many of their instances' profiles."""
    offered: dict[int, list[str]] = {index: [kind] for index, kind in enumerate(_by_place(gpus))}
    for entry in host.value("mig_layout") or []:
        for index in entry.get("gpus") or list(offered):
            offered[index] = list(entry["devices"])
    counts = Counter(kind for kinds in offered.values() for kind in kinds)
    return [{"type": kind, "count": count} for kind, count in counts.items()]


def _by_place(gpus: Sequence[Mapping[str, Any]]) -> list[str]:
    """The type of each GPU, by its device file where the contract says which those are."""
    types = [str(gpu["type"]) for gpu in gpus for _ in range(int(gpu["count"]))]
    files = [file for gpu in gpus for file in NodeSet(gpu.get("files"), resolver=RESOLVER_NOGROUP)]
    if len(files) != len(types):
        return types
    numbers = [int("".join(filter(str.isdigit, file)) or 0) for file in files]
    return [kind for _, kind in sorted(zip(numbers, types, strict=True))]


def finds_gpus(site: Site, host: Host) -> bool:
    """Whether Slurm finds a node's GPUs itself, and is not told their device files."""
    return has_mig(host) or any(
        master.value("slurmctld_gres_autodetect") in _FIND_GPUS for master in site.controllers
    )


def types_by_name(site: Site, host: Host, gpus: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """The types by which Slurm looks for whole GPUs of a node; None where it is told their device files."""
    if NODE not in host.groups or not finds_gpus(site, host):
        return None
    offered = slurm_gpus(host, gpus) if has_mig(host) else gpus
    return sorted({str(gpu["type"]) for gpu in gpus} & {str(gpu["type"]) for gpu in offered})


def has_managed_gpus(host: Host) -> bool:
    """Whether a compute node may get a driver: the inventory neither denies its GPUs nor the driver."""
    declared = host.variables.get("slurmd_hardware")
    gpus = declared.get("gpus") if isinstance(declared, dict) else None
    return NODE in host.groups and gpus != [] and host.value("nvidia_driver_source") not in _NOT_OURS

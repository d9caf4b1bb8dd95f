"""Slurm by SchedMD's own packaging: whether the site says what to build, once for all of its hosts."""

from collections.abc import Iterator

from deploy.errors import Finding
from deploy.site.inventory import Host, Site

_SOURCE, _TARBALL, _VERSION = "slurm_packages_source", "slurm_packages_tarball", "slurm_packages_version"
_BUILT_WITH = "slurm_packages_built_with"
_BUILT, _NVML, _NVML_LIBRARY = "schedmd", "nvml", "libnvidia-ml-dev"


def check_slurm_source(site: Site) -> Iterator[Finding]:
    """Packages that cannot be built, or that not all hosts of the cluster would have."""
    if not site.controllers:
        return
    master = site.controller
    yield from _differing(site, master)
    if master.value(_SOURCE) == _BUILT:
        yield from _not_said(master)
        yield from _without_nvml(site, master)


def _differing(site: Site, master: Host) -> Iterator[Finding]:
    for name in (_SOURCE, _TARBALL, _BUILT_WITH):
        others = [host for host in site.cluster if host.value(name) != master.value(name)]
        if others and (name == _SOURCE or master.value(_SOURCE) == _BUILT):
            yield Finding(
                others[0].where(name),
                "slurm-sources-differ",
                f"{name} is not the same for {others[0].name} and {master.name}, and all hosts of a cluster"
                " get the packages that are built once",
                f"set {name} once, in group_vars/all.yml",
            )


def _not_said(master: Host) -> Iterator[Finding]:
    lacking = [name for name in (_TARBALL, _VERSION) if not master.value(name)]
    if lacking:
        yield Finding(
            master.where(_SOURCE),
            "slurm-tarball-not-said",
            f"{_SOURCE} is {_BUILT}, and the site does not set {' and '.join(lacking)}",
            f"in group_vars/all.yml: {_VERSION}: '26.05', and {_TARBALL}: {{url: ADDRESS, sha256: CHECKSUM}}",
        )


def _without_nvml(site: Site, master: Host) -> Iterator[Finding]:
    asked = next((host for host in site.nodes if host.value("mig_layout")), None)
    wants = master.value("slurmctld_gres_autodetect") == _NVML or asked is not None
    if wants and not any("nvidia" in str(name) for name in master.value(_BUILT_WITH)):
        yield Finding(
            asked.where("mig_layout") if asked else master.where("slurmctld_gres_autodetect"),
            "slurm-built-without-nvml",
            "Slurm finds these GPUs by NVML, and is built without it",
            f"in group_vars/all.yml: {_BUILT_WITH}: [{_NVML_LIBRARY}]   (of a package source of the first "
            "controller); without MIG: slurmctld_gres_autodetect: nvidia",
        )

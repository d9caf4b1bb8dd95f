"""Where a site's Slurm comes from: the distribution's packages, or those that SchedMD's own packaging makes.

What the packages of a component are called, roles/slurm_packages/vars/main.yml says.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from deploy.content import read_data, roles
from deploy.site.inventory import Host, Site
from deploy.site.schema import default_of

Variables = dict[str, Any]

BUILT = "schedmd"
BUILT_FOR = ("Debian-13",)
"""The releases for which the role has the names of built packages."""
_TABLE = "__slurm_packages_by_release"
_HEADERS, _BUILT_HEADERS = "libslurm-dev", "slurm-smd-dev"
_BUILT_PAM = "slurm-smd-libpam-slurm-adopt"


def is_built(host: Host) -> bool:
    """Whether a host has Slurm by SchedMD's packaging."""
    return str(host.value("slurm_packages_source")) == BUILT


def slurm_builder(site: Site) -> tuple[Host, ...]:
    """The host that builds the packages; none where the distribution's are used."""
    return (site.controller,) if is_built(site.controller) else ()


def packages_of(host: Host, components: Iterable[str]) -> list[str]:
    """The packages of components; releases of distributions that have them call them alike."""
    names = _names()[str(host.value("slurm_packages_source"))]
    return [package for component in components for package in names[component]]


def source_variables(site: Site, host: Host) -> Variables:
    """What roles must know of the source: the directory by which built packages travel, and other names."""
    if not is_built(host):
        return {}
    return {
        "slurm_packages_exchange_directory": str(exchange_directory(site)),
        "job_ssh_packages": [_BUILT_PAM],
        "pyxis_build_packages": [
            _BUILT_HEADERS if name == _HEADERS else name for name in default_of("pyxis_build_packages")
        ],
        # Plugins are among the others. What finds GPUs by NVML is where slurm_packages_built_with brought the
        # library.
        "mig_slurm_plugin": "",
        "slurm_energy_packages": [],
        "slurmd_nvml_plugin": "",
        "slurm_tokens_packages": [],
        "slurm_rest_packages": [
            name
            for name in default_of("slurm_rest_packages")
            if name not in default_of("slurm_tokens_packages")
        ],
    }


def exchange_directory(site: Site) -> Path:
    """Where packages that one host built lie on the way to the others."""
    return site.directory.resolve() / ".deploy" / "packages"


@cache
def _names() -> dict[str, dict[str, list[str]]]:
    """By source the packages of each component, of the last release that has the source."""
    table = read_data(roles() / "slurm_packages" / "vars" / "main.yml")[_TABLE]
    return {
        source: names
        for sources in table.values()
        for source, names in sources.items()
        if names and all(names.values())
    }


def built_archive(site: Site, release: str) -> Path:
    """Where the packages are kept that were built for a release, ``Debian-13``.

    The role calls it the same (``__slurm_packages_built``); a test compares them.
    """
    master = site.controller
    tarball, beside = master.value("slurm_packages_tarball"), master.value("slurm_packages_built_with")
    words = " ".join([str(tarball.get("sha256", "")).lower(), *sorted(map(str, beside))])
    key = hashlib.sha256(words.encode()).hexdigest()[:16]
    return exchange_directory(site) / f"slurm-{release}-{key}.tar"

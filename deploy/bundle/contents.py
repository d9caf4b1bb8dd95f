"""What the hosts of a site fetch: packages of the distribution, and files with checksums. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deploy.content import read_data
from deploy.content import roles as roles_directory
from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import wired_variables
from deploy.plan.slurm_source import is_built
from deploy.site.hardware import Hardware, undiscovered
from deploy.site.inventory import Host, Site
from deploy.site.schema import options
from deploy.site.versions import MIRROR

# Ansible's own package module needs it on every host.
_ALWAYS = ("python3-apt",)
# What a role works out on the host, from its release.
WORKED_OUT = {"openmpi": ("libpmix-dev",)}
_BESIDE = {"libopenmpi-dev": ("gcc", "g++", "gfortran", "libc6-dev")}
"""What a role installs with a package that a site names."""
_NO_PACKAGES = frozenset({"bootstrap_attended_packages"})
"""Lists that begin names of packages, or say something else of them."""
ONE_PACKAGE = ("mig_slurm_plugin", "slurmd_nvml_plugin")
_PYTHON = "{}: name an index that the hosts reach in {}"
ELSEWHERE = {
    "nvidia_repository": (
        "nvidia_repository_wanted",
        "what GPU nodes take from NVIDIA's repository, which cannot be used beside a bundle",
    ),
    "grafana": (
        "",
        "Grafana: name a mirror in grafana_repository_uri, or leave it out with grafana_source: none",
    ),
    "ml_stack": ("", "Python packages of ml_stack_environments: name an index that the hosts reach"),
    "slurm_portal": ("", _PYTHON.format("Python packages of the portal", "slurm_portal_index_url")),
    "jupyter_server": (
        "",
        _PYTHON.format("Python packages of the portal's servers", "jupyter_server_index_url"),
    ),
    "seff": ("seff_reportseff", _PYTHON.format("Python packages of reportseff", "seff_index_url")),
    "slurm_packages": (
        "slurm_packages_repository",
        "Slurm from slurm_packages_repository, which is no source beside a bundle: it has the distribution's",
    ),
}
"""By role the variable without which it fetches nothing so, and what a bundle cannot hold of it."""
_DRIVER = "nvidia_driver"
_DISTRIBUTION = frozenset({"auto", "distribution"})
_NOT_BUILT = (
    "Slurm's packages, which are not built yet: where there is a network, deploy cluster with the same "
    "slurm_packages_tarball builds them (a lab will do); copy its .deploy/packages/slurm-*.tar beside this "
    "site's inventory, then make the bundle again"
)
# A bundle is often made before anybody has seen the machines.
_ANY: Mapping[str, Any] = {"cpus": 1, "memory_mb": 1, "gpus": [{"type": "gpu", "count": 1}]}


Variables = Mapping[str, Any]


@dataclass(frozen=True, order=True)
class Download:
    """A file at an address, and its SHA-256 checksum as 64 hexadecimal digits."""

    url: str
    sha256: str


@dataclass(frozen=True)
class Contents:
    """What a bundle has to hold.

    ``packages`` are names that hosts install together, one set for each kind of host; a distribution may not
    have all of them. ``left_out`` says what the site fetches from elsewhere and no bundle can hold.
    """

    packages: frozenset[frozenset[str]]
    downloads: tuple[Download, ...]
    left_out: tuple[str, ...]


def contents_of(
    site: Site,
    contract: Mapping[str, Hardware],
    built: frozenset[str] | None = None,
    *,
    architecture: str = "amd64",
) -> Contents:
    """What the hosts of a site fetch, from where it comes and not from the site's mirror.

    ``built`` is what the packages need that the site has built of Slurm; None where it has none.
    ``architecture`` is the hosts', as dpkg calls it.
    """
    original = replace(site, hosts={name: _without_mirror(host) for name, host in site.hosts.items()})
    unknown = {node.name: {**_ANY, **contract.get(node.name, {})} for node in undiscovered(site, contract)}
    supposed = {**contract, **unknown}
    wired = wired_variables(original, supposed)
    packages: set[frozenset[str]] = set()
    downloads: set[Download] = set()
    left_out: set[str] = set()
    steps = [(step.phase.roles, frozenset(step.hosts)) for step in build_plan(original, supposed).steps]
    for host in original.cluster:
        roles = [role for roles, hosts in steps if host.name in hosts for role in roles]
        variables = {**wired.by_host[host.name], **host.variables}
        needs = built or frozenset() if is_built(host) and "slurm_packages" in roles else frozenset()
        together = frozenset(_packages(host, roles, variables)) | needs
        takes_driver = _DRIVER in roles and host.value("nvidia_driver_source") in _DISTRIBUTION
        drivers = _drivers(host, architecture) if takes_driver else [frozenset[str]()]
        packages.update(together | driver for driver in drivers)
        if is_built(host) and built is None:
            left_out.add(_NOT_BUILT)
        downloads.update(_downloads(_from_elsewhere(host, wired.by_host[host.name])))
        # The catalogue's addresses are looked for on the mirror; those of the site are taken as they are.
        left_out.update(f"{own.url}, an address of the site's own" for own in _downloads(_fetched(host)))
        for role in ELSEWHERE.keys() & {*roles}:
            condition, what = ELSEWHERE[role]
            if not condition or variables.get(condition, host.value(condition)):
                left_out.add(what)
    return Contents(frozenset(packages), tuple(sorted(downloads)), tuple(sorted(left_out)))


def _fetched(host: Host) -> Variables:
    """The site's own variables by which hosts fetch; what is built of the tarball travels with the site."""
    return {key: value for key, value in host.variables.items() if key != "slurm_packages_tarball"}


def _without_mirror(host: Host) -> Host:
    return replace(host, variables={key: value for key, value in host.variables.items() if key != MIRROR})


def _packages(host: Host, roles: list[str], variables: Mapping[str, Any]) -> Iterator[str]:
    """Every list of packages of the host's roles, and what roles work out themselves."""
    yield from _ALWAYS
    yield from variables["bootstrap_packages"]
    for name, option in options().items():
        is_list = name.endswith("_packages") and name not in _NO_PACKAGES
        if option.role not in roles or not (is_list or name in ONE_PACKAGE):
            continue
        value = variables.get(name, host.value(name))
        for package in value if isinstance(value, list) else [value]:
            if package and "{" not in str(package):
                yield from (str(package), *_BESIDE.get(str(package), ()))
    for role in roles:
        yield from WORKED_OUT.get(role, ())
    if "cuda_toolkit" in roles and host.value("cuda_toolkit_source") == "distribution":
        yield from host.value("cuda_toolkit_parts") or ["nvidia-cuda-toolkit"]
        yield from (
            name for library in host.value("cuda_toolkit_libraries") for name in library.get("packages", ())
        )
    if "apptainer" in roles and host.value("apptainer_source") == "distribution":
        yield "apptainer"


def _drivers(host: Host, architecture: str) -> Iterator[frozenset[str]]:
    """The distribution's driver with each kind of kernel modules: which of them a host gets, its GPUs say."""
    releases = read_data(roles_directory() / _DRIVER / "vars/main.yml")["__nvidia_driver_by_release"]
    # Debian's releases, for which bundles are made, have the same names.
    names = releases["Debian-13"]["packages"]["distribution"]
    always = {*(host.value("nvidia_driver_parts") or names["versioned"]), *names["plain"]}
    for kind in ("open", "proprietary"):
        yield frozenset({*always, *names[kind], f"linux-headers-{architecture}"})


def _from_elsewhere(host: Host, wired: Variables) -> Variables:
    """The variables by which a host fetches files."""
    is_package = host.value("apptainer_source") == "distribution"
    return {key: it for key, it in wired.items() if not (is_package and key == "apptainer_package_files")}


def _downloads(value: Any) -> Iterator[Download]:  # noqa: ANN401 - a variable is whatever its role says
    """Every mapping in a value that has an address on the network and a checksum."""
    if isinstance(value, Mapping):
        url, sha256 = value.get("url"), value.get("sha256")
        if (
            isinstance(url, str)
            and isinstance(sha256, str)
            and url.startswith(("http://", "https://", "ftp://"))
        ):
            yield Download(url, sha256)
        for inner in value.values():
            yield from _downloads(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _downloads(inner)

"""The registry of images: where it is, its certificate, and what two of its parts would both be called."""

from collections.abc import Iterator

from deploy.errors import Finding, Severity
from deploy.site.inventory import REGISTRY, Host, Site

_CERTIFICATES = ("slurm_registry_certificate", "slurm_registry_certificate_key")


def check_registry(site: Site) -> Iterator[Finding]:
    """All of it."""
    registries = site.group(REGISTRY)
    if not registries:
        yield from _registry_that_is_off(site)
        return
    host = registries[0]
    if registries[1:]:
        yield Finding(
            registries[1].name,
            "registry-on-several-hosts",
            f"the registry of images is one, and [{REGISTRY}] names {len(registries)} hosts",
            f"leave one of them below [{REGISTRY}]",
        )
    given = [name for name in _CERTIFICATES if host.value(name)]
    if len(given) == 1:
        missing = next(name for name in _CERTIFICATES if name not in given)
        yield Finding(
            host.where(given[0]),
            "registry-certificate-incomplete",
            f"{given[0]} is set for {host.name}, and {missing} is not",
            f"set both, or none: then {host.name} has a certificate that nodes are told to trust",
        )
    yield from _twice(host)


def _twice(host: Host) -> Iterator[Finding]:
    upstreams = [str(each.get("name")) for each in host.value("slurm_registry_upstreams")]
    accounts = [str(each.get("name")) for each in host.value("slurm_registry_accounts")]
    for variable, names in (
        ("slurm_registry_upstreams", upstreams),
        ("slurm_registry_accounts", [str(host.value("slurm_registry_user")), *accounts]),
    ):
        if twice := next((name for name in names if names.count(name) > 1), None):
            yield Finding(
                host.where(variable),
                "registry-name-twice",
                f"{twice} is there twice in the registry of images",
                f"give each of {variable} a name of its own",
            )


def _registry_that_is_off(site: Site) -> Iterator[Finding]:
    for host in site.cluster:
        name = next((name for name in host.variables if name.startswith("slurm_registry_")), None)
        if name:
            yield Finding(
                host.where(name),
                "registry-off",
                f"{name} is set for {host.name}, and the cluster has no registry of images",
                f"name its host below [{REGISTRY}]",
                Severity.WARNING,
            )
            return

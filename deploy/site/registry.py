"""The registry of images: where it is, its certificate, and what two of its parts would both be called."""

from collections.abc import Collection, Iterator

from deploy.errors import Finding, Severity
from deploy.site.half_given import half_given
from deploy.site.inventory import REGISTRY, Host, Site


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
    yield from _twice(host)


def check_registry_certificate(site: Site, kept: Collection[str]) -> Iterator[Finding]:
    """Its certificate, the key of which may be among the secrets that are ``kept``."""
    for host in site.group(REGISTRY)[:1]:
        if half := half_given(host, "slurm_registry", kept):
            yield Finding(
                half.where,
                "registry-certificate-incomplete",
                half.message,
                f"set both, or none: then {host.name} has a certificate that nodes are told to trust",
            )


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

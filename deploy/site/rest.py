"""The REST API of Slurm: which hosts may have it, and its certificate."""

from collections.abc import Collection, Iterator

from deploy.errors import Finding, Severity
from deploy.site.half_given import half_given
from deploy.site.inventory import REST, Site

_OF_TOKENS = ("slurm_rest_", "slurm_tokens_", "slurmctld_users_make_tokens")


def check_rest(site: Site) -> Iterator[Finding]:
    """All of it."""
    if not site.group(REST):
        yield from _rest_that_is_off(site)
    known = {host.name for host in (*site.controllers, *site.logins)}
    for host in site.group(REST):
        if host.name not in known:
            yield Finding(
                host.name,
                "rest-elsewhere",
                f"{host.name} is to have the REST API, and is neither a controller nor a login node",
                f"name one of those below [{REST}]",
            )


def check_rest_certificate(site: Site, kept: Collection[str]) -> Iterator[Finding]:
    """Its certificate, the key of which may be among the secrets that are ``kept``."""
    for host in site.group(REST):
        if half := half_given(host, "slurm_rest", kept):
            yield Finding(
                half.where,
                "rest-certificate-incomplete",
                half.message,
                f"set both, or none: then {host.name} has a certificate of its own",
            )


def _rest_that_is_off(site: Site) -> Iterator[Finding]:
    for host in site.cluster:
        name = next((name for name in host.variables if name.startswith(_OF_TOKENS)), None)
        if name:
            yield Finding(
                host.where(name),
                "rest-off",
                f"{name} is set for {host.name}, and the cluster has no REST API",
                f"name its host below [{REST}]",
                Severity.WARNING,
            )
            return

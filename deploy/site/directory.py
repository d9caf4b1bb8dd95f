"""The directory that people come from: what would leave hosts without it, or its settings without effect."""

from collections.abc import Iterator

from deploy.errors import Finding, Severity
from deploy.site.inventory import Host, Site

_SERVERS = "sssd_servers"
_SHOWN = 5


def check_directory(site: Site) -> Iterator[Finding]:
    """All of it, each once."""
    joined = [host for host in site.cluster if host.variables.get(_SERVERS)]
    if not joined:
        yield from _directory_that_is_off(site)
        return
    found = (finding for host in joined for finding in _incomplete(host))
    yield from dict.fromkeys(found)
    others = [host.name for host in site.cluster if host not in joined]
    if others:
        shown = f"{', '.join(others[:_SHOWN])}{' …' if len(others) > _SHOWN else ''}"
        yield Finding(
            joined[0].where(_SERVERS),
            "directory-not-everywhere",
            f"people of the directory are unknown on {shown}: their jobs fail there, and Slurm refuses them",
            f"set {_SERVERS} in group_vars/all.yml",
            Severity.WARNING,
        )


def _directory_that_is_off(site: Site) -> Iterator[Finding]:
    for host in site.cluster:
        name = next((name for name in host.variables if name.startswith("sssd_") and name != _SERVERS), None)
        if name:
            yield Finding(
                host.where(name),
                "directory-off",
                f"{name} is set for {host.name}, which asks no directory",
                f"name its servers: {_SERVERS}: [ldaps://HOST, …]",
                Severity.WARNING,
            )
            return


def _incomplete(host: Host) -> Iterator[Finding]:
    where = host.where(_SERVERS)
    if not host.variables.get("sssd_search_base"):
        message = "people come from a directory, and no variable says below which entry of it they are"
        yield Finding(
            where, "directory-incomplete", message, "write it: sssd_search_base: dc=site,dc=example"
        )
    # A name without a password here may have it in secrets.yml; whether it is right, the directory says.
    if host.variables.get("sssd_bind_password") and not host.variables.get("sssd_bind_dn"):
        yield Finding(
            host.where("sssd_bind_password"),
            "directory-incomplete",
            "there is a sssd_bind_password and no sssd_bind_dn: the directory would be asked as nobody",
            "write whose password it is: sssd_bind_dn: cn=NAME,dc=site,dc=example",
        )
    for group in host.value("sssd_sudo_groups"):
        if group.get("password", True) and not host.value("sssd_passwords"):
            yield Finding(
                host.where("sssd_sudo_groups"),
                "directory-incomplete",
                f"sudo asks members of {group['name']} for a password, and sssd_passwords is false: nobody "
                "has one",
                "write password: false for this group, or let people have their passwords (sssd_passwords)",
            )

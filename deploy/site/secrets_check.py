"""Secrets that are none: placeholders, unfit ones, files that others can read, values that contradict."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deploy.errors import DeployError, Finding
from deploy.site.inventory import PORTAL, REGISTRY, REST, Host, Site
from deploy.site.origin import shown
from deploy.site.registry import check_registry_certificate
from deploy.site.rest import check_rest_certificate
from deploy.site.rules import RULES
from deploy.site.schema import OWN_PREFIX, options
from deploy.site.secrets import is_vaulted, read_secrets, secret_names, secrets_file
from deploy.site.values import opaque, suggestion

_SHORTEST = 16
_PLACEHOLDER = re.compile(
    r"change.?me|replace|placeholder|password|passwd|secret|deepops|example|\bto.?do\b"
    r"|(?<![a-z0-9])fix.?me(?![a-z0-9])|^<.*>$|^(.)\1*$",
    re.IGNORECASE,
)
"""The short ones stand alone: of 60,000 keys that were drawn, one had FIXME in it."""
_FORMS = {
    "log_server_key": (
        re.compile(r"\s*-----BEGIN (RSA |EC )?PRIVATE KEY-----.*", re.DOTALL),
        "is no private key as PEM text without passphrase",
    ),
    "munge_key": (re.compile(r".{32,}", re.DOTALL), "has fewer than 32 characters, which munge refuses"),
    "slurm_auth_key": (
        re.compile(r".{32,}", re.DOTALL),
        "has fewer than 32 characters, too few to sign with",
    ),
    "sssd_bind_password": (
        re.compile(r"[^\s#;]([^\r\n]*\S)?"),
        "begins or ends with a space, begins with # or ;, or has a line break, which sssd.conf cannot hold",
    ),
    "slurmdbd_database_password": (
        re.compile(r"""[^\s#"'\\]+"""),
        "has a space, quote, backslash or hash sign, which slurmdbd.conf cannot hold",
    ),
}
"""What the service that reads a secret can take: the form, and what is wrong with any other."""

_GENERATED = "remove the line: deploy then generates a random one"
_LOGIN_SECRETS = frozenset(
    {
        "ansible_password",
        "ansible_ssh_pass",
        "ansible_ssh_password",
        "ansible_become_pass",
        "ansible_become_password",
    }
)
"""Ansible's own; whoever has them can log in, but what they are is not this program's business."""


def check_secrets(site: Site, vault_password_file: Path | None) -> Iterator[Finding]:
    """Everything about secrets; never shows one."""
    path = secrets_file(site)
    if path.exists() and path.stat().st_mode & 0o077:
        yield _readable(path, "it holds the cluster's secrets")
    try:
        kept = read_secrets(path, vault_password_file)
    except DeployError as problem:
        yield from problem.findings
        return
    yield from _kept_faults(path, kept)
    yield from _declared_faults(site)
    for name in secret_names():
        yield from _contradictions(site, name, kept)
    given = [name for name, value in kept.items() if value]
    yield from check_rest_certificate(site.resolved, given)
    yield from check_registry_certificate(site.resolved, given)
    yield from _files_with_secrets(site)


def _kept_faults(path: Path, kept: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with secrets.yml, whose values win over everything else."""
    where = shown(str(path))
    for name, value in kept.items():
        option = options().get(name)
        if option and option.secret:
            yield from _unfit(where, name, value)
        elif option:
            message = f"{name} is no secret, and deploy does not look for it here"
            yield Finding(where, "not-a-secret", message, "move it to group_vars")
        elif not name.startswith((OWN_PREFIX, "ansible_")):
            hint = suggestion(name, dict.fromkeys(secret_names()))
            yield Finding(where, "unknown-variable", f"no role knows the secret {name!r}", hint)


def _declared_faults(site: Site) -> Iterator[Finding]:
    secret = {name: option for name, option in options().items() if option.secret}
    for host in site.cluster:
        for name, option in secret.items():
            if name in host.variables:
                for place, value in _leaves(name, option.spec, host.variables[name]):
                    yield from _unfit(host.where(name), place, value)


def _leaves(place: str, spec: Mapping[str, Any], value: object) -> Iterator[tuple[str, object]]:
    """The secrets in a value, with their paths."""
    if spec.get("no_log"):
        # A value with a form, which is a URL, is secret for the password in it.
        if place not in RULES or "@" in str(value):
            yield place, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(f"{place}[{index}]", {"options": spec.get("options")}, item)
    elif isinstance(value, dict):
        for key, inner in (spec.get("options") or {}).items():
            if key in value:
                yield from _leaves(f"{place}.{key}", inner, value[key])


def _unfit(where: str, name: str, value: object) -> Iterator[Finding]:
    """What is wrong with one secret; what is a template or encrypted is known only later."""
    if not isinstance(value, (str, int, float)) or opaque(value) or name in RULES:
        return
    text = str(value)
    option = options().get(name)
    if not text and option and option.spec.get("default") == "":
        return
    hint = _GENERATED if name in secret_names() else "write a random one, from: openssl rand -base64 32"
    if len(text) < _SHORTEST or _PLACEHOLDER.search(text):
        fault = f"is a placeholder or shorter than {_SHORTEST} characters"
        yield Finding(where, "placeholder-secret", f"{name} {fault}", hint)
    elif name in _FORMS:
        form, fault = _FORMS[name]
        if not form.fullmatch(text):
            yield Finding(where, "unfit-secret", f"{name} {fault}", hint)


def _contradictions(site: Site, name: str, kept: Mapping[str, Any]) -> Iterator[Finding]:
    """A generated secret that the inventory sets, too, or sets for some hosts only."""
    readers = _readers(site, options()[name].role)
    setters = [host for host in readers if name in host.variables]
    if setters and name in kept:
        yield Finding(
            setters[0].where(name),
            "secret-set-twice",
            f"{name} is set here and in secrets.yml, which wins: this line changes nothing",
            "remove one of the two lines",
        )
    elif setters and len(setters) < len(readers):
        without = next(host for host in readers if name not in host.variables)
        yield Finding(
            setters[0].where(name),
            "secret-not-everywhere",
            f"{name} is set for some hosts only; {without.name} would have none",
            "set it in group_vars/all.yml, or remove it: deploy then generates one for all",
        )


def _readers(site: Site, role: str) -> tuple[Host, ...]:
    """The hosts on which a role with a secret runs."""
    daemons = (*site.controllers, *site.accounting_hosts)
    of_roles = {
        "grafana": site.metrics,
        "mariadb_arbiter": tuple(host for host in (site.database_arbiter,) if host),
        "munge": (*daemons, *site.nodes, *site.logins),
        "slurm_auth": (*daemons, *site.nodes, *site.logins),
        "slurm_portal": site.group(PORTAL),
        # Who pulls trusts what follows from its key.
        "slurm_registry": (*site.group(REGISTRY), *site.containers),
        "slurm_rest": site.group(REST),
        "slurm_tokens": daemons,
    }
    names = {host.name for host in of_roles.get(role, site.database_hosts)}
    return tuple(host for host in site.hosts.values() if host.name in names)


def _files_with_secrets(site: Site) -> Iterator[Finding]:
    """Files of the inventory that hold a secret in the clear and can be read by others."""
    found: dict[Path, str] = {}
    for host in site.hosts.values():
        for name in host.variables:
            place = host.origins.get(name, "").rpartition(":")[0]
            if place and _holds_secret(host, name):
                found.setdefault(Path(place), name)
    for path, name in found.items():
        if path.is_file() and path.stat().st_mode & 0o077 and not is_vaulted(path):
            yield _readable(path, f"it holds {name}")


def _holds_secret(host: Host, name: str) -> bool:
    value, option = host.variables[name], options().get(name)
    if option and option.secret:
        return any(leaf and not opaque(leaf) for _, leaf in _leaves(name, option.spec, value))
    return name in _LOGIN_SECRETS and bool(value) and not opaque(value)


def _readable(path: Path, reason: str) -> Finding:
    return Finding(
        shown(str(path)),
        "secrets-readable",
        f"others than the owner may read this file, and {reason}",
        f"chmod 600 {shown(str(path))}",
    )

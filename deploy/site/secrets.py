"""Secrets of a site: random, generated once, kept 0600 or vaulted beside the inventory, never printed."""

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from deploy.errors import Finding, error
from deploy.site.inventory import Site
from deploy.site.schema import options

FILE_NAME = "secrets.yml"
_VAULT_HEADER = "$ANSIBLE_VAULT;"
_SHORTEST = 16
_GENERATED = "remove the line: deploy then generates a random one"
_PLACEHOLDER = re.compile(
    r"change.?me|replace|placeholder|password|passwd|secret|deepops|example|\bto.?do\b|fix.?me|^<.*>$|^(.)\1*$",
    re.IGNORECASE,
)
_FORMS = {
    "munge_key": (re.compile(r".{32,}", re.DOTALL), "has fewer than 32 characters, which munge refuses"),
    "slurmdbd_database_password": (
        re.compile(r"""[^\s#"']+"""),
        "has a space, quote or hash sign, which slurmdbd.conf cannot hold",
    ),
}
"""What the service that reads a secret can take: the form, and what is wrong with any other."""
_HEADER = """\
# Secrets of this cluster, made by deploy and used by every run. Keep this file and its backup private;
# encrypt it at any time with: ansible-vault encrypt secrets.yml
# To rotate a secret remove its line: the next `deploy cluster` makes a new one and puts it in place.
"""


def _generate(name: str) -> str:
    """A new random value: 768 bits for keys that are stretched over a cluster, 256 for passwords."""
    return secrets.token_urlsafe(96 if name.endswith("_key") else 32)


def secret_names() -> list[str]:
    """The required secrets of all roles: variables whose specification says no_log and required."""
    return sorted(name for name, option in options().items() if option.secret and option.spec.get("required"))


def secrets_file(site: Site) -> Path:
    """Where the site's secrets are kept."""
    return site.directory / FILE_NAME


def check_secrets(site: Site, vault_password_file: Path | None) -> list[Finding]:
    """Placeholders among the secrets, and a secrets file that others can read."""
    findings = []
    path = secrets_file(site)
    if path.exists() and path.stat().st_mode & 0o077:
        findings.append(
            Finding(
                str(path), "secrets-readable", "others than the owner may read this file", f"chmod 600 {path}"
            )
        )
    for place, values in [(str(path), _read(path, vault_password_file)), *_of_hosts(site)]:
        findings += [finding for name, value in values.items() for finding in _unfit(place, name, value)]
    return sorted(set(findings))


def _unfit(place: str, name: str, value: object) -> Iterator[Finding]:
    """What is wrong with one secret; what is a template or encrypted is known only later."""
    if not isinstance(value, (str, int, float)) or "{{" in (text := str(value)):
        return
    if len(text) < _SHORTEST or _PLACEHOLDER.search(text):
        fault = f"is a placeholder or shorter than {_SHORTEST} characters"
        yield Finding(place, "placeholder-secret", f"{name} {fault}", _GENERATED)
    elif name in _FORMS:
        form, fault = _FORMS[name]
        if not form.fullmatch(text):
            yield Finding(place, "unfit-secret", f"{name} {fault}", _GENERATED)


def fill_secrets(site: Site, vault_password_file: Path | None, into: Path | None = None) -> list[str]:
    """Generates what neither the inventory nor the secrets file holds; returns the new names.

    They go to the secrets file, or to the new private file ``into``.
    """
    path = secrets_file(site)
    present = _read(path, vault_password_file)
    declared = {name for _, values in _of_hosts(site) for name in values}
    missing = [name for name in secret_names() if name not in present and name not in declared]
    if missing:
        lines = "".join(f"{name}: {_generate(name)}\n" for name in missing)
        _append(into or path, lines, vault_password_file)
    return missing


def _of_hosts(site: Site) -> list[tuple[str, Mapping[str, Any]]]:
    """The secrets that the inventory itself sets, by host."""
    names = {name for name, option in options().items() if option.secret}
    return [
        (host.name, found)
        for host in site.cluster
        if (found := {name: host.variables[name] for name in names & host.variables.keys()})
    ]


def _read(path: Path, vault_password_file: Path | None) -> dict[str, Any]:
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    if text.startswith(_VAULT_HEADER):
        text = _vault("view", path, vault_password_file)
    try:
        values = yaml.load(text, Loader=_VaultTolerantLoader)  # noqa: S506 - a SafeLoader subclass
    except yaml.YAMLError as problem:
        line = getattr(getattr(problem, "problem_mark", None), "line", 0) + 1
        raise error(
            "secrets-invalid",
            "this file is not YAML (its text is not shown)",
            where=f"{path}:{line}",
            hint="one 'name: value' per line",
        ) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise error("secrets-invalid", "not a mapping", where=str(path), hint="one 'name: value' per line")
    return values


class _VaultTolerantLoader(yaml.SafeLoader):
    """Reads ``!vault`` values as opaque."""


_VaultTolerantLoader.add_constructor("!vault", lambda _loader, _node: None)


def _append(path: Path, lines: str, vault_password_file: Path | None) -> None:
    """Adds lines to the file, through a 0600 sibling that replaces it whole."""
    vaulted = path.exists() and path.read_text(encoding="utf-8").startswith(_VAULT_HEADER)
    if vaulted:
        before = _vault("view", path, vault_password_file)
    else:
        before = path.read_text(encoding="utf-8") if path.exists() else _HEADER
    if before and not before.endswith("\n"):
        before += "\n"
    sibling = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(sibling, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(before + lines)
            file.flush()
            os.fsync(file.fileno())
        if vaulted or (vault_password_file and not path.exists()):
            _vault("encrypt", sibling, vault_password_file)
        sibling.replace(path)
    finally:
        sibling.unlink(missing_ok=True)


def _vault(verb: str, path: Path, vault_password_file: Path | None) -> str:
    if vault_password_file is None:
        raise error(
            "vault-password-needed",
            "this file is encrypted with ansible-vault",
            where=str(path),
            hint="give its password with --vault-password-file FILE",
        )
    command = [str(Path(sys.executable).parent / "ansible-vault"), verb]
    command += ["--vault-password-file", str(vault_password_file), str(path)]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise error(
            "vault-password-wrong",
            f"ansible-vault cannot {verb} this file with the password of {vault_password_file}",
            where=str(path),
            hint=f"try: ansible-vault {verb} --vault-password-file {vault_password_file} {path}",
        )
    return result.stdout

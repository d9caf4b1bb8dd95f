"""Secrets of a site: random, generated once, kept 0600 or vaulted beside the inventory, never printed."""

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from deploy.durable import replace_file
from deploy.errors import error
from deploy.place import private_place
from deploy.site.ansible_settings import reading_environment
from deploy.site.inventory import SECRETS_FILE, Site
from deploy.site.origin import shown
from deploy.site.plain_yaml import NotReadable, parse_mapping, read_text
from deploy.site.schema import options

_VAULT_HEADER = "$ANSIBLE_VAULT;"
_PASSWORD_SETTINGS = ("ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_VAULT_IDENTITY_LIST")
_HEADER = """\
# Secrets of this cluster, made by deploy and used by every run. Keep this file and its backup private;
# encrypt it at any time with: ansible-vault encrypt secrets.yml
# To replace a secret on the cluster: deploy cluster INVENTORY --rotate NAME
"""


def _generate(name: str) -> str:
    """A new random value: 768 bits for keys that are stretched over a cluster, 256 for passwords."""
    return secrets.token_urlsafe(96 if name.endswith("_key") else 32)


def secret_names() -> list[str]:
    """The required secrets of all roles: variables whose specification says no_log and required."""
    return sorted(name for name, option in options().items() if option.secret and option.spec.get("required"))


OF_MEMBERS = "mariadb_cluster_key"
"""The secret of the hosts of a database that is on several."""
OF_NO_HOST = frozenset(
    (
        *("slurm_portal_key", "slurm_registry_key", "slurm_registry_password", "slurm_rest_key"),
        "ssh_server_authority_key",
    )
)
"""Secrets of which no host has more than what follows from them."""


def generated_names(site: Site) -> list[str]:
    """The secrets that deploy makes for a site."""
    return [*secret_names(), *([OF_MEMBERS] if site.database_arbiter else [])]


def secrets_file(site: Site) -> Path:
    """Where the site's secrets are kept."""
    return site.directory / SECRETS_FILE


def missing_secrets(site: Site, vault_password_file: Path | None, renewed: Collection[str] = ()) -> list[str]:
    """What neither the inventory nor the secrets file holds, and what is ``renewed`` there."""
    present = read_secrets(secrets_file(site), vault_password_file).keys() - {*renewed}
    declared = {name for host in site.cluster for name in host.variables}
    return [name for name in generated_names(site) if name not in present and name not in declared]


def fill_secrets(
    site: Site,
    vault_password_file: Path | None,
    into: Path | None = None,
    renewed: Collection[str] = (),
) -> list[str]:
    """Generates what is missing, and others in place of what is ``renewed``; returns the new names.

    They go to the secrets file, or to the new private file ``into``.
    """
    missing = missing_secrets(site, vault_password_file, renewed)
    if missing:
        lines = "".join(f"{name}: {_generate(name)}\n" for name in missing)
        _append(into or secrets_file(site), lines, vault_password_file, renewed)
    return missing


def read_secrets(path: Path, vault_password_file: Path | None) -> dict[str, Any]:
    """What a secrets file holds; nothing where there is none.

    Raises DeployError ``secrets-invalid``, ``vault-password-needed``, ``vault-password-wrong``.
    """
    if not path.exists():
        return {}
    try:
        text = _vault("view", path, vault_password_file) if is_vaulted(path) else read_text(path)
        return parse_mapping(text)
    except NotReadable as problem:
        raise error(
            "secrets-invalid",
            f"this file cannot be read: {problem.reason} (its text is not shown)",
            where=shown(problem.place(path)),
            hint="one 'name: value' per line",
        ) from None


def change_secrets(path: Path, vault_password_file: Path | None, change: Callable[[str], str]) -> None:
    """Changes the text of a secrets file, which stays encrypted if it was.

    Raises DeployError as ``read_secrets`` does.
    """
    read_secrets(path, vault_password_file)
    if is_vaulted(path):
        text = change(_vault("view", path, vault_password_file))
        replace_file(path, _vault("encrypt", path, vault_password_file, text))
    else:
        replace_file(path, change(path.read_text(encoding="utf-8")))


def is_vaulted(path: Path) -> bool:
    """Whether a whole file is encrypted with ansible-vault."""
    try:
        with path.open("rb") as file:
            return file.read(len(_VAULT_HEADER)) == _VAULT_HEADER.encode()
    except OSError:
        return False


def _append(path: Path, lines: str, vault_password_file: Path | None, renewed: Collection[str]) -> None:
    """Adds lines to the file, which is replaced whole; what is encrypted is in the clear in no file."""
    vaulted = is_vaulted(path)
    if vaulted:
        before = _vault("view", path, vault_password_file)
    else:
        before = path.read_text(encoding="utf-8") if path.exists() else _HEADER
    before = _without(before, renewed)
    if before and not before.endswith("\n"):
        before += "\n"
    text = before + lines
    if vaulted or (vault_password_file and not path.exists()):
        text = _vault("encrypt", path, vault_password_file, text)
    replace_file(path, text)


def _without(text: str, names: Collection[str]) -> str:
    """The text of a secrets file without some of its values, and with everything else as it is written."""
    lines: list[str] = []
    is_left_out = False
    for line in text.splitlines(keepends=True):
        if not line.startswith((" ", "\t", "\n", "#")):
            is_left_out = line.partition(":")[0].strip().strip("'\"") in names
        if not (is_left_out and not line.startswith(("\n", "#"))):
            lines.append(line)
    return "".join(lines)


def _vault(verb: str, path: Path, vault_password_file: Path | None, text: str | None = None) -> str:
    """What ansible-vault makes of a file, or of a text that is meant for it."""
    if vault_password_file is None and not any(map(os.environ.get, _PASSWORD_SETTINGS)):
        raise error(
            "vault-password-needed",
            "this file is encrypted with ansible-vault",
            where=shown(str(path)),
            hint="give its password with --vault-password-file FILE, or ANSIBLE_VAULT_PASSWORD_FILE",
        )
    command = [str(Path(sys.executable).parent / "ansible-vault"), verb]
    command += ["--vault-password-file", str(vault_password_file)] if vault_password_file else []
    command += [str(path)] if text is None else ["--output", "-", "-"]
    with private_place() as place:
        environment = reading_environment(os.environ) | {"ANSIBLE_LOCAL_TEMP": str(place)}
        result = subprocess.run(
            command, env=environment, input=text or "", capture_output=True, text=True, check=False
        )
    if result.returncode != 0:
        of = vault_password_file or "the environment"
        raise error(
            "vault-password-wrong",
            f"ansible-vault cannot {verb} this file with the password of {of}",
            where=shown(str(path)),
            hint=f"try: ansible-vault {verb} {f'--vault-password-file {of} ' if vault_password_file else ''}"
            f"{path}",
        )
    return result.stdout

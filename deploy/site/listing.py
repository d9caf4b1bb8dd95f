"""Prints an inventory as Ansible reads it, as JSON.

``{"hosts": {name: variables}, "groups": {name: [hosts]}, "origins": {host: {variable: "file:line"}},
"connections": {host: {variable: value}}, "resolved": {host: {variable: number}}, "resolutions": [...],
"unresolved": reason}``, or ``{"error": message, "where": "file:line", "fits": bool}`` and exit code 1.
Variables are as they are written, templates and all, but for those on how a host is reached. What the
templates of others come to is in ``resolutions``, once for all hosts that share it (see resolution.py);
``unresolved`` says why this Ansible could not be asked. An error that does not ``fit`` says that Ansible is
not as this program knows it, and nothing of the inventory.

Run as a program of its own, with Ansible's own classes: what they keep in globals stays out of ``deploy``,
and it takes half the time of ``ansible-inventory``, which every command would pay.

Standard input is JSON: a line ``[inventory, playbook_directory, limit, vault_password_file]``, of which the
last two may be empty, and then the context, which is what ``Resolver`` works with; where it is null, nothing
is resolved. So it can be started, and import Ansible, before it is known what to list, and the context be put
together while it reads the inventory.
"""

import gc
import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

# What is imported stays: it is not looked through for what may go, neither now nor later.
gc.disable()

from ansible import constants
from ansible._internal._datatag._tags import Origin
from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import EncryptedString, VaultHelper, get_file_vault_secret
from ansible.plugins.loader import init_plugin_loader
from ansible.template import Templar
from ansible.utils.collection_loader import AnsibleCollectionConfig
from ansible.vars.hostvars import HostVars
from ansible.vars.manager import VariableManager

gc.freeze()
gc.enable()

_MAGIC = frozenset({"groups", "group_names", "hostvars", "omit", "playbook_dir", "environment"})
_MAGIC_PREFIXES = ("inventory_",)
_CONNECTION_PREFIXES = (
    "ansible_host",
    "ansible_port",
    "ansible_user",
    "ansible_ssh",
    "ansible_private_key_file",
    "ansible_connection",
    "ansible_python_interpreter",
    "ansible_become",
    "ansible_password",
)


def listing(
    inventory: str,
    playbook_directory: str,
    limit: str,
    vault_password_file: str,
    context: Callable[[], Mapping[str, Any] | None],
) -> dict[str, object]:
    """The hosts that match ``limit`` with their variables, and the groups with those hosts.

    The ``context`` is asked for when the inventory was read.
    """
    loader = DataLoader()
    # Without it the group_vars of the directory where deploy happens to be started would count.
    loader.set_basedir(playbook_directory)
    if not AnsibleCollectionConfig.collection_finder:
        init_plugin_loader()
    vaults = [identity.rpartition("@")[::2] for identity in constants.DEFAULT_VAULT_IDENTITY_LIST]
    password_file = vault_password_file or constants.DEFAULT_VAULT_PASSWORD_FILE
    secrets: list[tuple[str, object]] = []
    for name, file in (*vaults, *([("", password_file)] if password_file else [])):
        try:
            secret = get_file_vault_secret(filename=file, vault_id=name or "default", loader=loader)
            secret.load()
        except AnsibleError:
            if (name, file) == ("", password_file):
                raise
            # As Ansible goes on; what needs the missing one says so itself.
            continue
        secrets.append((name or "default", secret))
        # A password may be encrypted with the one before.
        loader.set_vault_secrets(secrets)
    manager = InventoryManager(loader=loader, sources=[inventory])
    manager_of_variables = VariableManager(loader=loader, inventory=manager)
    chosen = manager.get_hosts(limit or "all")
    names = {host.name for host in chosen}
    hosts: dict[str, dict[str, object]] = {}
    origins: dict[str, dict[str, str]] = {}
    connections: dict[str, dict[str, object]] = {}
    everything: dict[str, dict[str, Any]] = {}
    for host in chosen:
        variables = manager_of_variables.get_vars(host=host, include_hostvars=False)
        everything[host.name] = variables
        own = {name: variables[name] for name in variables if not _is_magic(str(name))}
        hosts[host.name] = {str(name): value for name, value in own.items()}
        connections[host.name] = _rendered(own, Templar(loader, variables))
        origins[host.name] = {str(name): place for name in own if (place := _place(name, own[name]))}
    hostvars = HostVars(manager, manager_of_variables, loader)
    groups = {
        name: [host.name for host in group.get_hosts() if host.name in names]
        for name, group in manager.groups.items()
    }
    return {
        "hosts": hosts,
        "groups": groups,
        "origins": origins,
        "connections": connections,
        **_resolutions(everything, loader, hostvars, context()),
    }


def _resolutions(
    variables: Mapping[str, Mapping[str, Any]],
    loader: DataLoader,
    hostvars: HostVars,
    context: Mapping[str, Any] | None,
) -> dict[str, object]:
    """What templates come to, by host; or nothing, and why."""
    resolved: dict[str, dict[str, int]] = {}
    resolutions: list[dict[str, Any]] = []
    if context:
        numbers: dict[int, int] = {}
        try:
            # Here, so that the inventory is read where Ansible has not all that resolving takes.
            from deploy.site.resolution import Resolver  # noqa: PLC0415

            resolver = Resolver(loader, hostvars, context)
            for host, own in variables.items():
                for name, resolution in resolver.of_host(own).items():
                    number = numbers.setdefault(id(resolution), len(resolutions))
                    if number == len(resolutions):
                        resolutions.append(resolution)
                    resolved.setdefault(host, {})[name] = number
        except Exception as problem:  # noqa: BLE001 - what is wrong with a template is in its resolution
            return {"resolved": {}, "resolutions": [], "unresolved": _said(problem)}
    return {"resolved": resolved, "resolutions": resolutions, "unresolved": ""}


def _rendered(variables: dict[str, object], templar: Templar) -> dict[str, object]:
    """The variables on how a host is reached; one that cannot be rendered stays as it is written."""
    rendered = {}
    for name, value in variables.items():
        if str(name).startswith(_CONNECTION_PREFIXES):
            try:
                rendered[str(name)] = templar.template(value)
            except AnsibleError:
                rendered[str(name)] = value
    return rendered


def _is_magic(name: str) -> bool:
    return name in _MAGIC or name.startswith(_MAGIC_PREFIXES)


def _place(name: object, value: object) -> str:
    """Where a variable got its value; a bool carries no mark, but the first mention of its name does.

    A mapping begins in the line below its name, so the name's own line is better where it is the same file.
    """
    named, valued = Origin.get_tag(name), Origin.get_tag(value)
    if not valued or (named and named.path == valued.path):
        valued = named
    return f"{valued.path}:{valued.line_num}" if valued and valued.path and valued.line_num else ""


def _plain(value: object) -> object:
    """What JSON has no word for; of a value that is encrypted by itself only whether it changed."""
    if not isinstance(value, EncryptedString):
        return str(value)
    text = VaultHelper.get_ciphertext(value, with_tags=False) or ""
    return {"__ansible_vault": hashlib.sha256(text.encode()).hexdigest()}


def _said(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"


def _fault(problem: BaseException) -> dict[str, object]:
    """What Ansible stumbled over, and where, as far as any of the chained exceptions knows."""
    if not isinstance(problem, AnsibleError):
        return {"error": _said(problem), "where": "", "fits": False}
    message = str(problem) or type(problem).__name__
    link: BaseException | None = problem
    while link:
        thing = getattr(link, "obj", None)
        origin = thing if isinstance(thing, Origin) else Origin.get_tag(thing)
        if origin and origin.path:
            return {"error": message, "where": f"{origin.path}:{origin.line_num or 1}", "fits": True}
        link = link.__cause__ or link.__context__
    return {"error": message, "where": "", "fits": True}


def main() -> None:
    """Print what there is, or why it cannot be read."""
    try:
        inventory, playbook_directory, limit, password_file = json.loads(sys.stdin.readline())
        found = listing(inventory, playbook_directory, limit, password_file, lambda: json.load(sys.stdin))
        answer, code = json.dumps(found, default=_plain), 0
    except Exception as problem:  # noqa: BLE001 - of what it is, the caller judges
        answer, code = json.dumps(_fault(problem)), 1
    sys.stdout.write(answer)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # Ansible's modules take a tenth of a second to be taken down in order


if __name__ == "__main__":
    main()

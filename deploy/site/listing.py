"""Prints an inventory as Ansible reads it: ``{"hosts": {name: variables}, "groups": {name: [hosts]}}``.

Run as a program of its own, with Ansible's own classes: what they keep in globals stays out of ``deploy``,
and it takes half the time of ``ansible-inventory``, which every command would pay.

    listing.py INVENTORY PLAYBOOK_DIRECTORY LIMIT VAULT_PASSWORD_FILE     (the last two may be empty)
"""

import json
import os
import sys

from ansible import constants
from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.vault import get_file_vault_secret
from ansible.vars.manager import VariableManager

_MAGIC = frozenset({"groups", "group_names", "hostvars", "omit", "playbook_dir", "environment"})
_MAGIC_PREFIXES = ("inventory_",)


def listing(
    inventory: str, playbook_directory: str, limit: str, vault_password_file: str
) -> dict[str, object]:
    """The hosts that match ``limit`` with their variables, and the groups with those hosts."""
    loader = DataLoader()
    # Without it the group_vars of the directory where deploy happens to be started would count.
    loader.set_basedir(playbook_directory)
    password_file = vault_password_file or constants.DEFAULT_VAULT_PASSWORD_FILE
    if password_file:
        secret = get_file_vault_secret(filename=password_file, vault_id="default", loader=loader)
        secret.load()
        loader.set_vault_secrets([("default", secret)])
    manager = InventoryManager(loader=loader, sources=[inventory])
    variables = VariableManager(loader=loader, inventory=manager)
    chosen = manager.get_hosts(limit or "all")
    names = {host.name for host in chosen}
    return {
        "hosts": {
            host.name: {
                name: value
                for name, value in variables.get_vars(host=host, include_hostvars=False).items()
                if name not in _MAGIC and not name.startswith(_MAGIC_PREFIXES)
            }
            for host in chosen
        },
        "groups": {
            name: [host.name for host in group.get_hosts() if host.name in names]
            for name, group in manager.groups.items()
        },
    }


def main() -> None:
    """Print, or say on standard error why not."""
    try:
        found = listing(*sys.argv[1:5])
    except AnsibleError as problem:
        sys.exit(f"[ERROR]: {problem}")
    # A value encrypted by itself is an object; what it holds is nobody's business here.
    json.dump(found, sys.stdout, default=lambda _: {"__ansible_vault": True})
    sys.stdout.flush()
    os._exit(0)  # Ansible's modules take a tenth of a second to be taken down in order


if __name__ == "__main__":
    main()

"""The settings of Ansible by which an inventory means the same wherever it is read, and in a run."""

from collections.abc import Mapping

from deploy.content import ansible_config, roles
from deploy.site import own_files

KEPT: Mapping[str, str] = {
    "ANSIBLE_REMOTE_USER": "who logs in",
    "ANSIBLE_REMOTE_PORT": "the port of sshd",
    "ANSIBLE_PRIVATE_KEY_FILE": "the ssh key",
    "ANSIBLE_SSH_EXECUTABLE": "the program that is called as ssh",
    "ANSIBLE_SSH_ARGS": "options of ssh, in place of those by which Ansible shares a connection",
    "ANSIBLE_SSH_COMMON_ARGS": "further options of ssh, scp and sftp",
    "ANSIBLE_SSH_EXTRA_ARGS": "further options of ssh",
    "ANSIBLE_BECOME": "how one becomes root; and all that begin so",
    "ANSIBLE_VAULT_": "passwords of vaults: all that begin so",
}
"""Of the caller's own ANSIBLE_ variables those on how to reach and unlock hosts, with their meaning.

The others would make a run depend on the shell it is started from.
"""
_OTHERS = ("ANSIBLE_", "_ANSIBLE_", "RUNNER_", "AWX_")


def reading_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment in which Ansible reads an inventory: of the caller's own what may count there."""
    kept = {
        name: value
        for name, value in inherited.items()
        if name.startswith(tuple(KEPT)) or not name.startswith(_OTHERS)
    }
    return kept | {
        "ANSIBLE_CONFIG": str(ansible_config()),
        # Nothing but the collections of our own installation.
        "ANSIBLE_COLLECTIONS_PATH": str(roles().parent / "collections"),
        "ANSIBLE_DUPLICATE_YAML_DICT_KEY": "error",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
        "ANSIBLE_INVENTORY_IGNORE_REGEX": ",".join(own_files.PATTERNS),
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "true",
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS": "ignore",
    }
